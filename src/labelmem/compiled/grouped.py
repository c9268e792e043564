"""One stream's cells, several of them for a label, read by kernels; what a read of them tells.

As in ``compiled/cells.py`` a read computes what every step needs and copies nothing: the rest is
told when someone asks for it, and kept before a write changes it. Writes are those of numpy.
"""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from labelmem.compiled.crowds import read_crowded
from labelmem.compiled.groups import Grouped, read_groups
from labelmem.fast import Array, tensor
from labelmem.fast.cells import OneStream, Past
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["GroupedCells", "GroupedRead"]

_TOLD = ("label", "alpha", "group", "written")


class GroupedCells:
    """The cells of one stream as arrays over the bytes of the tensors, for many reads.

    Parameters
    ----------
    cells
        The same, as numpy reads and writes them.
    v
        The memory's tensor (1, K, d).
    watched
        Whether reads tell how labels came so far.
    """

    __slots__ = ("_now", "cells", "shape", "tensor", "watched")

    def __init__(self, cells: OneStream, v: Tensor, watched: bool) -> None:
        self.cells, self.watched = cells, watched
        self.tensor, self.shape = v, (1, v.shape[2])
        self._now: weakref.ref[_Moment] | None = None

    def __reduce__(self) -> Any:
        """No copy of it looks at the bytes of the copied memory, so that is found out anew."""
        return type(None), ()

    def are(self, v: Tensor) -> bool:
        """Whether these are still the memory's cells; it may have grown."""
        return v is self.tensor

    def read(self, h: Array, used: int, time: Tensor, lam: float, delta: float) -> GroupedRead:
        """Eq. 2 and 3 for ``h`` (d,)."""
        cells, groups = self.cells, self.cells.kept.groups
        assert groups is not None
        room, crowds = groups.room, groups.crowds
        # In one piece: several large ones, freed one by one, go back to the system every time.
        told = np.empty(len(room) + 4 * len(groups), np.float32)
        shares, of_labels = told[: len(room)], told[len(room) :].reshape(4, -1)
        known = Grouped(cells.v, groups.place[:used], *groups.tables, room)
        if crowds:
            many = (crowds.of_cell[:used], crowds.columns, cells.kept.size[0], cells.alpha)
            read_crowded(*many, known, h, lam, delta, shares, of_labels)
        else:
            read_groups(known, h, lam, delta, shares, of_labels)
        moment = None if self._now is None else self._now()
        if moment is None:
            moment = _Moment(cells, used, int(time), self.watched)
            self._now = weakref.ref(moment)
        return GroupedRead(moment, shares, of_labels)

    def settle(self) -> None:
        """Something is about to change the cells: reads that are still held get their copies."""
        moment = None if self._now is None else self._now()
        if moment is not None:
            moment.keep()
        self._now = None


class _Moment:
    """The cells between two writes: the cells themselves, until something is about to change."""

    def __init__(self, cells: OneStream, used: int, time: int, watched: bool) -> None:
        self.cells, self.used, self.time, self.watched = cells, used, time, watched
        self.past: Past | None = None
        self.kept: dict[str, Array] | None = None

    def keep(self) -> dict[str, Array]:
        """Copies of all that reads tell; made once."""
        if self.kept is None:
            cells, k = self.cells, self.used
            assert cells.kept.groups is not None
            self.kept = {name: getattr(cells, name)[:k].copy() for name in _TOLD}
            self.kept["lead"] = cells.kept.groups.lead.copy()
            self.kept["place"] = cells.kept.groups.place[:k].copy()
            if self.watched:
                cells.used = k
                self.past = cells.past(self.time)
        return self.kept


class GroupedRead(MemoryRead):
    """What a read by kernels saw. Shares and scores are there; the rest is made when asked for.

    Parameters
    ----------
    moment
        The cells as they were.
    shares
        Eq. 2's shares of the cells, at their places.
    of_labels
        (4, Y) Eq. 2's alpha, the cosine of h with M, the length of M, and Eq. 3's s.
    """

    moment: _Moment
    shares: Array
    of_labels: Array

    def __init__(self, moment: _Moment, shares: Array, of_labels: Array) -> None:
        # Past the guard that makes reads unchangeable.
        own = self.__dict__
        own["moment"], own["shares"], own["of_labels"] = moment, shares, of_labels

    def _at_cells(self, values: Array) -> Tensor:
        """Values (Y, …) of the labels at their leading cells, (1, K, …)."""
        spread = np.zeros((self.moment.used, *values.shape[1:]), values.dtype)
        spread[self.moment.keep()["lead"]] = values
        return tensor(spread)

    @cached_property
    def lead(self) -> Array | slice:
        """The positions of the leading cells."""
        return np.sort(self.moment.keep()["lead"])

    @cached_property
    def label(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.keep()["label"])

    @cached_property
    def alpha(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.keep()["alpha"])

    @cached_property
    def weight(self) -> Tensor:
        """(1, K)."""
        return tensor(self.shares[self.moment.keep()["place"]])

    @cached_property
    def score(self) -> Tensor:
        """(1, K)."""
        return self._at_cells(self.of_labels[3])

    @cached_property
    def group(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.keep()["group"])

    @cached_property
    def strength(self) -> Tensor:
        """(1, K)."""
        return self._at_cells(self.of_labels[0])

    @cached_property
    def cosine(self) -> Tensor:
        """(1, K)."""
        return self._at_cells(self.of_labels[1])

    @cached_property
    def age(self) -> Tensor:
        """(1, K)."""
        return tensor((self.moment.time + 1 - self.moment.keep()["written"]).astype(np.int32))

    @cached_property
    def past(self) -> LabelPast | None:
        """How the labels came so far, where the memory was asked to tell."""
        self.moment.keep()
        past = self.moment.past
        if past is None:
            return None
        told = (past.writes, past.age, past.since_first, past.rates)
        blocks = (self.of_labels[1, :, None], self.of_labels[2, :, None])
        return LabelPast(*(self._at_cells(values) for values in (*told, *blocks)))
