"""The continuous neural cache: the last states and the words that followed them."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem_paper.experiments.language.answer import Recalled
from labelmem_paper.experiments.language.pieces import Piece

__all__ = ["NeuralCache"]


class NeuralCache:
    """``p(w) ~ sum over the window of exp(flat h_t . h_i)`` where word w followed state h_i.

    Parameters
    ----------
    cells
        Size of the window, in words.
    flat
        The paper's theta: 0 counts words, large values look only at the most alike states.
    weight
        The paper's lambda: the share of the cache in the mixture.

    References
    ----------
    Grave, Joulin, Usunier: Improving Neural Language Models with a Continuous Cache (2016).
    """

    def __init__(
        self, cells: int, flat: float, weight: float, streams: int, dim: int, device: torch.device
    ) -> None:
        self.cells, self.flat, self.weight = cells, flat, weight
        self.h = torch.zeros(streams, 0, dim, device=device)
        self.words = torch.zeros(streams, 0, dtype=torch.int64, device=device)

    def run(self, piece: Piece) -> Recalled:
        """Look back at every word of a piece, and keep its states and words."""
        keys, words = torch.cat([self.h, piece.h], 1), torch.cat([self.words, piece.y], 1)
        seen = self._in_window(piece.y.shape[1], keys)
        score = self.flat * piece.h @ keys.mT
        s = torch.softmax(score.masked_fill(~seen, -torch.inf), dim=2)
        s = torch.where(seen, s, torch.zeros_like(s))  # nothing but nan where nothing is seen
        self.h, self.words = keys[:, -self.cells :], words[:, -self.cells :]
        return Recalled(words[:, None].expand_as(s), s, self.weight)

    def _in_window(self, steps: int, keys: Tensor) -> Tensor:
        """(C, K) which states a step sees: the ``cells`` before its own."""
        old = keys.shape[1] - steps
        own = old + torch.arange(steps, device=keys.device)[:, None]
        place = torch.arange(keys.shape[1], device=keys.device)
        return (place < own) & (place >= own - self.cells)
