"""Nearest neighbours among all states of the text so far."""

from __future__ import annotations

import torch

from labelmem_paper.experiments.language.answer import Recalled
from labelmem_paper.experiments.language.pieces import Piece

__all__ = ["PastStates"]


class PastStates:
    """``p(w) ~ sum over the k nearest past states of exp(-|h_t - h_i|^2 / (width d))``.

    Only the stream's own past is searched; the datastore of the paper, the training text, is not
    used, since that is no adaptation.

    Parameters
    ----------
    k
        How many neighbours count.
    width
        How far away a neighbour may be, relative to the number of dimensions.
    weight
        The share of the neighbours in the mixture.

    References
    ----------
    Khandelwal et al.: Generalization through Memorization: Nearest Neighbor Language Models (2020).
    """

    def __init__(
        self, k: int, width: float, weight: float, streams: int, dim: int, device: torch.device
    ) -> None:
        self.k, self.width, self.weight = k, width, weight
        self.h = torch.zeros(streams, 1024, dim, device=device)
        self.words = torch.zeros(streams, 1024, dtype=torch.int64, device=device)
        self.count = 0

    def run(self, piece: Piece) -> Recalled:
        """Search before every word of a piece; its states are kept, all of them."""
        steps = piece.y.shape[1]
        self._room(self.count + steps)
        self.h[:, self.count : self.count + steps] = piece.h
        self.words[:, self.count : self.count + steps] = piece.y
        own = self.count + torch.arange(steps, device=piece.y.device)[:, None]
        self.count += steps
        keys = self.h[:, : self.count]
        far = torch.cdist(piece.h, keys).square()
        far = far.masked_fill(torch.arange(self.count, device=own.device) >= own, torch.inf)
        near = far.topk(min(self.k, self.count), dim=2, largest=False)
        seen = near.values.isfinite()
        score = -near.values / (self.width * piece.h.shape[2])
        s = torch.softmax(score.masked_fill(~seen, -torch.inf), dim=2)
        s = torch.where(seen, s, torch.zeros_like(s))
        words = self.words[:, None, : self.count].expand(-1, steps, -1)
        return Recalled(words.gather(2, near.indices), s, self.weight)

    def _room(self, wanted: int) -> None:
        """Twice the room whenever it runs out."""
        while self.h.shape[1] < wanted:
            self.h = torch.cat([self.h, torch.zeros_like(self.h)], dim=1)
            self.words = torch.cat([self.words, torch.zeros_like(self.words)], dim=1)
