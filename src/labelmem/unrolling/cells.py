"""Reads of many steps at once, for a memory with one cell per label and no limit.

Such a memory is a sum of keys for each label: if it is known which steps write, no read has to wait
for another. A stretch of steps is read from the cells as they were before it, and from what its own
steps made of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.config import MemoryConfig

__all__ = ["Cells", "Written", "places_of"]


@dataclass(frozen=True)
class Cells:
    """The memories of ``n`` streams before a step; place c is for the c-th label of a stream."""

    v: Tensor
    """(n, C, d) the sums of what was written."""
    alpha: Tensor
    """(n, C) their weights, 0 for a label that was never written."""

    @classmethod
    def empty(cls, key: Tensor, places: int) -> Cells:
        """Nothing is written yet; ``key`` (n, …, d) says of what kind the numbers will be."""
        n, d = key.shape[0], key.shape[-1]
        return cls(key.new_zeros(n, places, d), key.new_zeros(n, places))


@dataclass(frozen=True)
class Written:
    """A stretch of T steps, some of which write, and the cells before it."""

    cells: Cells
    config: MemoryConfig
    key: Tensor
    """(n, T, d)."""
    last: Tensor
    """(n, T + 1, C) the latest step before each step, and before the end, that wrote a label's
    cell, counted from 1; 0 for none."""
    v: Tensor
    """(n, T, d) what the cell of each step's label holds after that step."""
    alpha: Tensor
    """(n, T) and its weight."""

    @classmethod
    def by(
        cls, cells: Cells, config: MemoryConfig, key: Tensor, place: Tensor, writes: Tensor
    ) -> Written:
        """The same after ``writes`` (n, T) of the labels at ``place`` (n, T)."""
        steps = torch.arange(key.shape[1], device=key.device)
        # (n, T, T) whether a step, or one before it, wrote the cell of that step's label.
        same = (place[:, :, None] == place[:, None, :]) & writes[:, None, :]
        same &= steps[:, None] >= steps
        held = place[..., None].expand(-1, -1, key.shape[2])
        v = cells.v.gather(1, held) + same.to(key.dtype) @ key
        # alpha -> decay * alpha + 1, so many times.
        times = same.sum(dim=2).to(key.dtype)
        kept = config.decay**times
        more = times if config.decay == 1 else (1 - kept) / (1 - config.decay)
        alpha = kept * cells.alpha.gather(1, place) + more
        marks = torch.zeros(
            *key.shape[:2], cells.alpha.shape[1], dtype=torch.int64, device=v.device
        )
        marks.scatter_(2, place[..., None], ((steps + 1) * writes)[..., None])
        last = torch.nn.functional.pad(marks.cummax(dim=1).values, (0, 0, 1, 0))
        return cls(cells, config, key, last, v, alpha)

    def scores(self) -> Tensor:
        """(n, T, C) Eq. 3 at every step, 0 for a label without a cell."""
        unit, last = F.normalise(self.key), self.last[:, :-1]
        fresh, at = last > 0, (last - 1).clamp(min=0)
        before = unit @ F.normalise(self.cells.v).mT
        cosine = torch.where(fresh, (unit @ F.normalise(self.v).mT).gather(2, at), before)
        own = self.alpha[:, None].expand(-1, at.shape[1], -1).gather(2, at)
        alpha = torch.where(fresh, own, self.cells.alpha[:, None])
        flat = cosine.flatten(0, 1), alpha.flatten(0, 1), (alpha > 0).flatten(0, 1)
        lam, delta = self.config.lam, self.config.delta
        return F.kernel_score(*flat, lam, delta).view_as(cosine)

    def after(self) -> Cells:
        """The cells after the stretch."""
        last = self.last[:, -1]
        fresh, at = last > 0, (last - 1).clamp(min=0)
        v = self.v.gather(1, at[..., None].expand_as(self.cells.v))
        alpha = self.alpha.gather(1, at)
        return Cells(
            torch.where(fresh[..., None], v, self.cells.v),
            torch.where(fresh, alpha, self.cells.alpha),
        )


def places_of(y: Tensor) -> tuple[Tensor, Tensor]:
    """Number the labels y (n, T) of each stream.

    Returns
    -------
    place, names
        (n, T) the number of each step's label, and (n, C) the label of each number, 0 where a
        stream has fewer of them.

    Examples
    --------
    >>> places_of(torch.tensor([[7, 3, 7], [5, 5, 5]]))
    (tensor([[1, 0, 1],
            [0, 0, 0]]), tensor([[3, 7],
            [5, 0]]))
    """
    ordered, order = y.sort(dim=1)
    new = torch.nn.functional.pad(ordered.diff(dim=1) != 0, (1, 0))
    number = new.cumsum(dim=1)
    place = torch.zeros_like(y).scatter(1, order, number)
    names = y.new_zeros(len(y), int(number.max()) + 1).scatter(1, number, ordered)
    return place, names
