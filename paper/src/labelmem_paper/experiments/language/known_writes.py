"""Reads of a memory whose writes are known beforehand, many steps at once.

The vector of a cell is the sum of the keys written to it. So its product with the key of a step is
that with the sum at the start of the passage, plus the products with the keys written since: one
matrix of products between all steps of the passage, with a mask of who wrote what. The squared
length of the sum grows in the same way. Nothing is looped over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem_paper.experiments.language.ledger import Writes

__all__ = ["Entries", "Held", "Passage"]


@dataclass(frozen=True, eq=False)
class Held:
    """The memory of n streams between two passages: N cells, their sums and who wrote last."""

    v: Tensor
    """(n, N, d) sums of the keys."""
    alive: Tensor
    """(n, N) whether a cell holds anything."""
    count: Tensor
    """(n, N) how often a cell was written since it was begun."""
    facts: Tensor
    """(n, N, A) what is known of the last write of each cell."""

    @classmethod
    def empty(cls, streams: int, cells: int, dim: int, facts: int, like: Tensor) -> Held:
        """Before the first word; device and type are those of ``like``."""
        return cls(
            like.new_zeros(streams, cells, dim),
            torch.zeros(streams, cells, dtype=torch.bool, device=like.device),
            like.new_zeros(streams, cells),
            like.new_zeros(streams, cells, facts),
        )


@dataclass(frozen=True, eq=False)
class Entries:
    """Where the words of a passage go, for n streams: see :class:`Writes`."""

    place: Tensor
    """(n, C) -1 where a word is not written."""
    born: Tensor
    """(n, C)."""
    count: Tensor
    """(n, C)."""
    weights: Tensor
    """(n, C, 1 + rates) alpha and the rates of the cells after the writes."""

    @classmethod
    def of(cls, writes: Sequence[Writes], like: Tensor) -> Entries:
        """Those of each stream; device and type of numbers are those of ``like``."""
        weights = [
            [(alpha, *rates) for alpha, rates in zip(one.alpha, one.rates, strict=True)]
            for one in writes
        ]
        return cls(
            torch.tensor([one.place for one in writes], device=like.device),
            torch.tensor([one.born for one in writes], device=like.device),
            torch.tensor([one.count for one in writes], device=like.device, dtype=like.dtype),
            torch.tensor(weights, device=like.device, dtype=like.dtype),
        )


class Passage:
    """C steps of n streams with their writes.

    Parameters
    ----------
    held
        The memory before.
    entries
        Where the words go.
    facts
        (n, C, A) what a cell remembers of the step that wrote it last, exact up to 2**24 if whole
        numbers: the word, its time, what came before it.
    keep
        The share of a cell's vector that a write keeps; the paper's is 1.
    """

    def __init__(self, held: Held, entries: Entries, facts: Tensor, keep: float = 1.0) -> None:
        device, cells = held.v.device, held.v.shape[1]
        self.held, self.keep = held, keep
        place, self.born, count = entries.place, entries.born, entries.count
        self.written = place >= 0
        self.place = place.clamp(min=0)
        n, steps = place.shape
        step = torch.arange(steps, device=device)
        # Row t holds, for each cell, the last step before t that wrote it; one row more than steps.
        marks = torch.full((n, steps + 1, cells), -1, device=device, dtype=torch.int32)
        marked = torch.where(self.written, step, -1).to(torch.int32)
        marks[:, 1:].scatter_(2, self.place[..., None], marked[..., None])
        self.last = marks.cummax(dim=1).values.long()
        self.here = self.last >= 0
        # Since when the present word has the cell; -1 where that is before the passage.
        since = self.born.gather(1, self.last.clamp(min=0).flatten(1)).view_as(self.last)
        self.since = torch.where(self.here, since, -1)
        own = count.gather(1, self.last.clamp(min=0).flatten(1)).view_as(self.last)
        self.count = torch.where(self.here, own, held.count[:, None])
        # What is left before step t of what step i wrote, and of what was there at the start.
        place = self.place[:, None].expand(-1, steps + 1, -1)
        counts = self.written[:, None] & (self.since.gather(2, place) <= step)
        counts &= _before(steps, device)
        later = (self.count.gather(2, place) - count[:, None]).clamp(min=0)
        self.left = torch.where(counts, keep**later, torch.zeros_like(later))
        later = (self.count - held.count[:, None]).clamp(min=0)
        self.kept = torch.where(self.since < 0, keep**later, torch.zeros_like(later))
        self._facts = facts

    @property
    def alive(self) -> Tensor:
        """(n, C, N) whether a cell holds anything."""
        return self.here[:, :-1] | self.held.alive[:, None]

    def facts(self) -> Tensor:
        """(n, C, N, A) what each cell remembers before each step."""
        return self._remembered(slice(None, -1))

    def _remembered(self, rows: slice) -> Tensor:
        last, here = self.last[:, rows], self.here[:, rows]
        n, steps, cells = last.shape
        wide = self._facts.shape[2]
        index = last.clamp(min=0).flatten(1)[..., None].expand(-1, -1, wide)
        new = self._facts.gather(1, index).view(n, steps, cells, wide)
        return torch.where(here[..., None], new, self.held.facts[:, None])

    def cosines(self, keys: Tensor, sums: Tensor) -> Tensor:
        """(n, C, N) between the key of each step and the vector of each cell before it.

        Parameters
        ----------
        keys
            (n, C, m) of the steps, which are also what is written.
        sums
            (n, N, m) the vectors of the cells before the passage; a linear map of :attr:`Held.v` if
            the keys are the same map of what was summed there.
        """
        kept, left = self.kept[:, :-1], self.left[:, :-1]
        place = self.place[:, None].expand(-1, keys.shape[1], -1)
        dots = (keys @ sums.mT * kept).scatter_add(2, place, keys @ keys.mT * left)
        own = dots.gather(2, self.place[..., None])[..., 0]
        step = torch.arange(keys.shape[1], device=keys.device)
        squares = keys.square().sum(2)
        # |a v + k|^2 = a^2 |v|^2 + 2 a v k + |k|^2, and a cell begun anew starts from nothing.
        fresh = self.born == step
        grown = squares + torch.where(fresh, torch.zeros_like(own), 2 * self.keep * own)
        sizes = sums.square().sum(2)[:, None] * kept.square()
        sizes = sizes.scatter_add(2, place, grown[:, None] * left.square())
        length = (sizes.clamp(min=1e-12) * squares.clamp(min=1e-12)[..., None]).sqrt()
        return dots / length

    def after(self, keys: Tensor) -> Held:
        """The memory at the end of the passage."""
        place = self.place[..., None].expand_as(keys)
        v = self.held.v * self.kept[:, -1, :, None]
        v = v.scatter_add(1, place, keys * self.left[:, -1, :, None])
        alive = self.here[:, -1] | self.held.alive
        return Held(v, alive, self.count[:, -1], self._remembered(slice(-1, None))[:, 0])


def _before(steps: int, device: torch.device) -> Tensor:
    """(C + 1, C) whether column i comes before row t."""
    return torch.ones(steps + 1, steps, dtype=torch.bool, device=device).tril(-1)
