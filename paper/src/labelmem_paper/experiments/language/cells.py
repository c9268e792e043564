"""The labeled memory of the paper over long texts, all of it on the device.

One cell for each word, theta the same for all. It is the memory of :mod:`labelmem.memory` in a form
whose every step is the same few operations on tensors that never move. On a GPU one kernel takes
many steps (:mod:`labelmem_paper.experiments.language.cells_kernel`); where there is no Triton the
steps of a whole block are recorded once and then replayed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError
from labelmem.kernels import fused
from labelmem_paper.experiments.language.answer import Recalled
from labelmem_paper.experiments.language.pieces import AT_ONCE, Piece

__all__ = ["Cells"]

BLOCK = 64
"""Steps that are recorded together on a GPU, at most."""
FUSED_MOST = 8192
"""The most cells that one program of the kernel looks at."""


class Cells:
    """Memories of n streams, read and written word by word.

    Parameters
    ----------
    config
        With a capacity, and one cell per label.
    theta
        The weight of the memory.
    record
        Whether to record and replay blocks of steps. None takes the shortest way there is: a kernel
        for all steps, or else blocks where the device is a GPU.

    Notes
    -----
    Two things make a step small. The best word that did not come is the best of the model's, or one
    in memory: mixing raises words in memory only, so no other word needs to be looked at. And a
    step that writes nothing writes into one more cell that nobody reads, so that there is nothing
    to decide outside of the tensors.
    """

    def __init__(
        self,
        config: MemoryConfig,
        theta: float,
        streams: int,
        dim: int,
        device: torch.device,
        record: bool | None = None,
    ) -> None:
        if config.capacity is None or config.cells_per_label != 1 or config.evict != "oldest":
            raise ConfigError(
                f"the memory is {config}; over texts it needs a capacity, one cell per label, and "
                "evicts the oldest"
            )
        self.config, self.theta = config, theta
        self.ratio = math.exp(min(config.margin, 60.0))  # any greater lead is as good as certain
        self.record = device.type == "cuda" if record is None else record
        self.fuse = record is None and config.capacity <= FUSED_MOST
        n, cells = streams, config.capacity + 1  # the last one takes what is not written
        self.v = torch.zeros(n, cells, dim, device=device)
        self.inverse = torch.zeros(n, cells, device=device)  # 1 / |v|
        self.alpha = torch.zeros(n, cells, device=device)
        self.prior = torch.full((n, cells), -torch.inf, device=device)  # delta log alpha
        self.label = torch.full((n, cells), -1, device=device)
        # Free cells come before all others when room is looked for, the first of them first.
        self.written = (torch.arange(cells, device=device) - cells).repeat(n, 1)
        self.time = torch.zeros((), dtype=torch.int64, device=device)
        self._size = BLOCK
        self._block: _Block | None = None

    def run(self, piece: Piece) -> Recalled:
        """Read and write at every word of a piece, in order."""
        if self._block is None:
            self._size = min(BLOCK, piece.y.shape[1])
        parts: list[tuple[Tensor, Tensor]] = []
        most = max(1, AT_ONCE // piece.y.shape[0])
        for start in range(0, piece.y.shape[1], most):
            stop = min(start + most, piece.y.shape[1])
            at_once = self._fused(piece, slice(start, stop))
            parts += [at_once] if at_once is not None else self._blocks(piece, start, stop)
        words, s = (torch.cat(part, 1) for part in zip(*parts, strict=True))
        return Recalled(words.clamp(min=0), s, self.theta)

    def _fused(self, piece: Piece, part: slice) -> tuple[Tensor, Tensor] | None:
        """All steps of a part in one kernel; None where they must be taken as specified."""
        if not (self.fuse and fused(self.v, piece.h, piece.log_r)):
            return None
        from labelmem_paper.experiments.language.cells_kernel import take_steps

        names = ("v", "inverse", "alpha", "prior", "label", "written")
        held = {name: getattr(self, name)[:, :-1] for name in names}
        taken = take_steps(held, self.time, piece, part, self.config, self.theta, self.ratio)
        if taken is None:
            return None
        new, words, s = taken
        for name in names:  # in their places: recorded blocks know no others
            held[name].copy_(new[name])
        self.time.add_(words.shape[1])
        return words, s

    def _blocks(self, piece: Piece, start: int, stop: int) -> list[tuple[Tensor, Tensor]]:
        starts = range(start, stop, self._size)
        return [self._steps(piece, first, min(first + self._size, stop)) for first in starts]

    def _steps(self, piece: Piece, start: int, stop: int) -> tuple[Tensor, Tensor]:
        given = Given.of(piece, start, stop, self.theta)
        if self.record and stop - start == self._size:
            if self._block is None:
                self._block = _Block(self, given)
            return self._block.replay(given)
        seen = [self._step(*(part[:, k] for part in given)) for k in range(stop - start)]
        words, s = (torch.stack(part, 1) for part in zip(*seen, strict=True))
        return words, s

    def _step(
        self, h: Tensor, unit: Tensor, r: Tensor, y: Tensor, r_y: Tensor, r_other: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Read, mix, and write where the lead is too small; words and s before the write."""
        config, cells, theta = self.config, self.v.shape[1] - 1, self.theta
        label = self.label[:, :cells].clone()
        dots = torch.bmm(self.v, unit[..., None])[..., 0]
        score = torch.addcmul(self.prior, dots, self.inverse, value=config.lam)[:, :cells]
        s = torch.softmax(score, dim=1).nan_to_num(0.0)
        own = label == y[:, None]
        P = torch.add(r.gather(1, label.clamp(min=0)), s, alpha=theta)
        p_y = torch.add(r_y, (s * own).sum(1), alpha=theta)
        # An empty place has no word; it must not stand for word 0.
        best = torch.maximum(r_other, P.masked_fill(own | (label < 0), 0.0).amax(1))
        # log P(y) - log P(best) < margin, without the logarithms.
        write = p_y < best * self.ratio
        place = self.written[:, :cells].masked_fill(own, -cells - 2).argmin(1)
        self._write(place, write, own.any(1), h, y)
        return label, s

    def _write(self, place: Tensor, write: Tensor, known: Tensor, h: Tensor, y: Tensor) -> None:
        """Put h into cell ``place`` of each stream; ``known`` cells keep what they held."""
        place = place.masked_fill(~write, self.v.shape[1] - 1)[:, None]
        kept = (known & write)[:, None].to(h.dtype)
        wide = place[..., None].expand(-1, -1, h.shape[1])
        v = torch.addcmul(h[:, None], self.v.gather(1, wide), kept[..., None])
        alpha = torch.addcmul(
            torch.ones_like(kept), self.alpha.gather(1, place), kept, value=self.config.decay
        )
        self.v.scatter_(1, wide, v)
        # A vector of zeros has a product of 0 with all others, whatever its length is said to be.
        self.inverse.scatter_(1, place, v.norm(dim=2).clamp(min=1e-20).reciprocal())
        self.alpha.scatter_(1, place, alpha)
        self.prior.scatter_(1, place, self.config.delta * alpha.log())
        self.label.scatter_(1, place, y[:, None])
        self.written.scatter_(1, place, self.time.expand_as(place))
        self.time.add_(1)


class Given(tuple[Tensor, ...]):
    """What the steps of a block need of the model, one tensor (n, C, ...) each."""

    @classmethod
    def of(cls, piece: Piece, start: int, stop: int, theta: float) -> Given:
        """Of the steps from ``start`` to ``stop`` of a piece; r is weighted already."""
        part = slice(start, stop)
        h, weight = piece.h[:, part], 1 - theta
        norm = h.norm(dim=2, keepdim=True)
        unit = h / torch.where(norm > 0, norm, torch.ones_like(norm))
        r = weight * piece.log_r[:, part].exp()
        r_y, r_other = (x[:, part].exp() * weight for x in (piece.log_r_y, piece.log_r_other))
        return cls((h, unit, r, piece.y[:, part], r_y, r_other))


class _Block:
    """The steps of one block as a recorded CUDA graph."""

    def __init__(self, cells: Cells, given: Given) -> None:
        self.given = Given(part.clone() for part in given)
        state = (cells.v, cells.inverse, cells.alpha, cells.prior, cells.label, cells.written)
        before = [part.clone() for part in (*state, cells.time)]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # as recording asks for: once outside of it
            cells._step(*(part[:, 0] for part in self.given))
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            seen = [
                cells._step(*(part[:, k] for part in self.given)) for k in range(given[0].shape[1])
            ]
            self.words, self.s = (torch.stack(part, 1) for part in zip(*seen, strict=True))
        for part, old in zip((*state, cells.time), before, strict=True):
            part.copy_(old)

    def replay(self, given: Given) -> tuple[Tensor, Tensor]:
        """Run the block on other input."""
        for mine, other in zip(self.given, given, strict=True):
            mine.copy_(other)
        self.graph.replay()
        return self.words.clone(), self.s.clone()
