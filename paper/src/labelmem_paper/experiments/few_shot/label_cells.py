"""The labeled memory in a form that networks can be trained through.

The labels of a batch are known beforehand and each has room for its T cells. So cells lie in a
table, label by label, nothing is evicted, and one write enters a vector under every label. Nothing
is changed in place: gradients flow through what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from labelmem import MemoryConfig
from labelmem import functional as F

__all__ = ["LabelCells"]


@dataclass(frozen=True)
class LabelCells:
    """T places for each of L labels, of which the first ``count`` hold cells."""

    v: Tensor
    """(L, T, d) contents."""
    alpha: Tensor
    """(L, T) weights."""
    count: Tensor
    """(L,) cells in use."""
    config: MemoryConfig

    @staticmethod
    def empty(labels: int, cells: int, config: MemoryConfig, like: Tensor) -> LabelCells:
        """No label has a cell; size and device of the vectors are those of ``like`` (…, d)."""
        v = like.new_zeros(labels, cells, like.shape[-1])
        count = torch.zeros(labels, dtype=torch.int64, device=like.device)
        return LabelCells(v, v[..., 0], count, config)

    @property
    def alive(self) -> Tensor:
        """(L, T) which places hold a cell."""
        return torch.arange(self.v.shape[1], device=self.v.device) < self.count[:, None]

    def scores(self, h: Tensor) -> Tensor:
        """Logarithm (n, L) of Eq. 3's score, not normalised, of h (n, d); -inf without cells."""
        lam, delta = self.config.lam, self.config.delta
        # Cells come first: then everything runs over long rows, even where labels have few cells.
        cosine = torch.einsum("nd,ltd->tnl", F.normalise(h), F.normalise(self.v))
        w = _shares(lam * cosine, self.alive.T[:, None])
        dot = (w * cosine * self.v.norm(dim=2).T[:, None]).sum(dim=0)
        # The length of M = sum w v follows from the products of a label's own cells.
        gram = torch.einsum("ltd,lsd->tsl", self.v, self.v)
        square = torch.stack([(row[:, None] * w).sum(dim=0) for row in gram])
        square = (square * w).sum(dim=0)
        length = torch.where(square > 0, square, torch.ones_like(square)).sqrt()
        found: Tensor = lam * dot / length
        if delta:
            strength = (w * self.alpha.T[:, None]).sum(dim=0)
            found = found + delta * torch.where(strength > 0, strength, 1.0).log()
        return found.masked_fill(self.count == 0, -torch.inf)

    def written(self, h: Tensor, wrong: Tensor) -> LabelCells:
        """After one write of h (L, d) under each label.

        ``wrong`` (L,) tells whether the prediction was: only then a label gets one more cell.
        """
        alive, places = self.alive, torch.arange(self.v.shape[1], device=h.device)
        cosine = (F.normalise(h)[:, None] * F.normalise(self.v)).sum(dim=2)
        w = _shares(self.config.lam * cosine.T, alive.T).T
        v = self.v + w[..., None] * h[:, None]
        alpha = torch.where(alive, self.config.decay * self.alpha + w, self.alpha)
        append = (self.count == 0) | (wrong & (self.count < len(places)))
        weakest = self.alpha.masked_fill(~alive, torch.inf).argmin(dim=1)
        place = torch.where(append, self.count, weakest)
        placed = append | (wrong & (self.count > 1))
        here = placed[:, None] & (places == place[:, None])
        v = torch.where(here[..., None], h[:, None], v)
        alpha = torch.where(here, torch.ones_like(alpha), alpha)
        return replace(self, v=v, alpha=alpha, count=self.count + append.to(self.count.dtype))


def _shares(x: Tensor, alive: Tensor) -> Tensor:
    """Softmax of x (T, …) over the cells of each label; 0 where there are none."""
    hidden = ~alive & alive.any(dim=0)  # a row of -inf alone would have no gradient
    return torch.softmax(x.masked_fill(hidden, -torch.inf), dim=0) * alive
