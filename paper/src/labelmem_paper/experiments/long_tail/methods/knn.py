"""The last so many examples, whatever their label: first in, first out."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.search import Point
from labelmem_paper.experiments.long_tail.contender import LimitedContender


class KNN(LimitedContender):
    """The nearest of the latest examples answers; there is nothing to search."""

    @torch.no_grad()
    def answers(self, point: Point, h: Tensor, y: Tensor, capacity: int) -> Tensor:
        """A step sees only what came at most ``capacity`` steps before it."""
        unit = F.normalise(h.cpu())
        steps = torch.arange(len(h))
        gone = steps[:, None] - steps[None]
        near = (unit @ unit.T).masked_fill((gone <= 0) | (gone > capacity), -torch.inf)
        best, found = near.max(dim=1)
        return torch.where(torch.isfinite(best), y[found], -1)


CONTENDER = KNN
