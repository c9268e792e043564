"""LMN-fixed over running text: the library's labeled memory, read and written word by word."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem import LabeledMemory, MemoryConfig
from labelmem import functional as F
from labelmem.errors import ConfigError
from labelmem_paper.experiments.language.answer import Recalled
from labelmem_paper.experiments.language.pieces import Piece

__all__ = ["Cells"]


class Cells:
    """The memories of n streams, with one weight ``theta`` for all words.

    Mixing raises the probability of words in memory only. So the best word that did not come is
    either the model's best one or a word in memory, and no step looks at the whole vocabulary.
    Every step is small, so the memories are kept on the CPU, wherever the model is.
    """

    def __init__(self, config: MemoryConfig, theta: float, streams: int, dim: int) -> None:
        if config.cells_per_label != 1:
            raise ConfigError(f"the memory is {config}; over texts it needs one cell per word")
        self.memory = LabeledMemory(dim, config, streams)
        self.theta = theta

    @torch.no_grad()
    def run(self, piece: Piece) -> Recalled:
        """Read before every word of a piece, and write where the lead is too small."""
        best = torch.stack([piece.log_r_y, piece.log_r_other], 2).exp()
        h, y, best, log_r = (part.cpu() for part in (piece.h, piece.y, best, piece.log_r))
        seen = [self._step(h[:, t], y[:, t], best[:, t], log_r[:, t]) for t in range(y.shape[1])]
        words, s = (_stacked(part).to(piece.h.device) for part in zip(*seen, strict=True))
        return Recalled(words, s, self.theta)

    def _step(self, h: Tensor, y: Tensor, best: Tensor, log_r: Tensor) -> tuple[Tensor, Tensor]:
        """One word of every stream; ``best`` (n, 2) is r of that word and of the best other."""
        read = self.memory.read(h)
        words, s = read.label.clamp(min=0), read.score
        own = read.label == y[:, None]
        found = (s * own).sum(1, keepdim=True)
        r = torch.cat([best, log_r.gather(1, words).exp() * ~own], 1)
        P = F.mix(r, torch.cat([found, torch.zeros_like(found), s * ~own], 1), self.theta)
        loss, _ = F.margin_loss(P, torch.zeros_like(y), self.memory.config.margin)
        self._write(h, y, loss > 0)
        return words, s

    def _write(self, h: Tensor, y: Tensor, writes: Tensor) -> None:
        if self.memory.streams > 1:
            self.memory.write(h, y, mask=writes)
        elif writes:
            self.memory.write(h, y)


def _stacked(parts: tuple[Tensor, ...]) -> Tensor:
    """(n, C, K) of the cells (n, k) at each step, padded to the largest k."""
    most = max(part.shape[1] for part in parts)
    return torch.stack([pad(part, (0, most - part.shape[1])) for part in parts], 1)
