"""One stream's cells, several of them for a label, read by kernels; what a read of them tells.

As in ``told.py`` a read computes what every step needs and copies nothing. Writes are
those of the reference; afterwards the label that they changed is looked at anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from torch import Tensor

from labelmem.engines.numba.crowds import read_crowded
from labelmem.engines.numba.groups import Grouped, read_groups
from labelmem.engines.numba.label_tables import Groups
from labelmem.engines.numba.told import Moment, Told
from labelmem.fast import Array, array, tensor
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["GroupedCells", "GroupedRead"]


class GroupedCells(Told):
    """The cells of one stream as arrays over the bytes of the tensors, for many reads.

    Parameters
    ----------
    cells
        The memory's tensors by name, (1, K, …), spare positions included.
    time
        (1,) the time of the latest observation.
    used
        How many positions hold a cell.
    """

    __slots__ = ("alpha", "group", "groups", "label", "shape", "tensor", "used", "v", "written")

    def __init__(self, cells: Mapping[str, Tensor], time: Tensor, used: int) -> None:
        super().__init__()
        self.time, self.used = array(time), used
        self.attach(cells)
        self.groups = Groups(*(x[:used] for x in (self.v, self.alpha, self.label, self.group)))

    def attach(self, cells: Mapping[str, Tensor]) -> None:
        """The same cells lie elsewhere: the memory has grown."""
        self.tensor = cells["v"]
        self.shape = (1, self.tensor.shape[2])
        self.v, self.alpha, self.label = (array(cells[name])[0] for name in ("v", "alpha", "label"))
        self.group, self.written = (array(cells[name])[0] for name in ("group", "written"))

    @property
    def told(self) -> tuple[str, ...]:
        """The arrays that reads tell."""
        return ("label", "alpha", "group", "written", "lead", "place")

    @property
    def lead(self) -> Array:
        """(Y,) the positions of the leading cells."""
        return self.groups.lead

    @property
    def place(self) -> Array:
        """(K+,) the cells' places in what a read returns."""
        return self.groups.place

    def read(self, h: Array, lam: float, delta: float) -> GroupedRead:
        """Eq. 2 and 3 for ``h`` (d,)."""
        groups, room, crowds = self.groups, self.groups.room, self.groups.crowds
        # In one piece: several large ones, freed one by one, go back to the system every time.
        found = np.empty(len(room) + 4 * len(groups), np.float32)
        shares, of_labels = found[: len(room)], found[len(room) :].reshape(4, -1)
        known = Grouped(self.v, groups.place[: self.used], *groups.tables, room)
        if crowds:
            many = (crowds.of_cell[: self.used], crowds.columns, crowds.length, self.alpha)
            read_crowded(*many, known, h, lam, delta, shares, of_labels)
        else:
            read_groups(known, h, lam, delta, shares, of_labels)
        return GroupedRead(self.moment(self.used), shares, of_labels)

    def follow(self, cells: Mapping[str, Tensor], used: int, y: int) -> None:
        """A write changed cells of the label ``y``; another label may have lost one to it."""
        self.attach(cells)
        own = self.label[:used] == y
        if y not in self.groups and used == self.used:
            loser = self.groups.owner(int(own.argmax()))
            self._update(loser, self.label[:used] == loser)
        self.used = used
        self._update(y, own)

    def _update(self, label: int, own: Array) -> None:
        self.groups.update(label, np.flatnonzero(own), self.v, self.alpha, self.group)


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

    compiled = True
    moment: Moment
    shares: Array
    of_labels: Array

    def __init__(self, moment: Moment, shares: Array, of_labels: Array) -> None:
        # Past the guard that makes reads unchangeable.
        own = self.__dict__
        own["moment"], own["shares"], own["of_labels"] = moment, shares, of_labels

    def with_past(self, writes: Tensor, age: Tensor, first: Tensor, rates: Tensor) -> GroupedRead:
        """The same that tells how the labels came so far; h is compared as a whole."""
        size = self._at_cells(self.of_labels[2])
        blocks = (self.cosine[..., None], size[..., None])
        self.__dict__["past"] = LabelPast(writes, age, first, rates, *blocks)
        return self

    @cached_property
    def by_position(self) -> Array:
        """(Y,) the labels in the order of their leading cells: a loaded stream has the same."""
        return np.argsort(self.moment.view_of("lead"))

    @cached_property
    def lead(self) -> Array:
        """(Y,) the positions of the leading cells, in order."""
        lead: Array = self.moment.view_of("lead")[self.by_position]
        return lead

    @cached_property
    def scores_of_cells(self) -> Array:
        """(Y,) Eq. 3's s."""
        scores: Array = self.of_labels[3, self.by_position]
        return scores

    def told(self, name: str) -> Array:
        """(Y,) what the leading cells had of this kind."""
        found: Array = self.moment.view_of(name)[self.lead]
        return found

    def at_cells(self, values: Array) -> Tensor:
        """Values (Y,) of the labels at their leading cells, (1, K)."""
        spread = np.zeros(self.moment.used, values.dtype)
        spread[self.lead] = values
        return tensor(spread)

    def of_leading(self, values: Tensor) -> Array:
        """The other way round."""
        found: Array = array(values)[0, self.lead]
        return found

    def _at_cells(self, values: Array) -> Tensor:
        """Values (Y,) of the labels, in the order of the tables, at their leading cells, (1, K)."""
        return self.at_cells(values[self.by_position])

    @cached_property
    def label(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("label"))

    @cached_property
    def alpha(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("alpha"))

    @cached_property
    def weight(self) -> Tensor:
        """(1, K)."""
        return tensor(self.shares[self.moment.view_of("place")])

    @cached_property
    def score(self) -> Tensor:
        """(1, K)."""
        return self._at_cells(self.of_labels[3])

    @cached_property
    def group(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("group"))

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
        age = self.moment.time + 1 - self.moment.view_of("written")
        return tensor(age.astype(np.int32))
