"""Several cells per label, one stream: a cache that lets Eq. 2 do without making M.

M is a sum of a label's cells, so its product with h is the same sum of their products, and its
length follows from the products of the cells with each other: the label's Gram matrix, which only
a write to the label changes. Labels are columns here, their cells the rows of a table. Labels with
too many cells for that are kept apart: :mod:`labelmem.engines.numba.label_crowds`.
"""

from __future__ import annotations

import numpy as np

from labelmem.engines.numba.label_crowds import Crowds
from labelmem.engines.numba.read import TINY
from labelmem.fast import Array

__all__ = ["Groups"]

_MOST = 16  # cells of a label, beyond which the table would cost more than a second pass
_NO_CELL = np.array([-np.inf, 0.0, 0.0], np.float32)[
    :, None, None
]  # what is known where there is none


class Groups:
    """The labels that own cells, in columns, with what reads need of their cells.

    Parameters
    ----------
    v, alpha
        (K, d) the cells' contents and (K,) their weights.
    label, group
        (K,) the cells' labels and the positions of their leading cells.
    """

    def __init__(self, v: Array, alpha: Array, label: Array, group: Array) -> None:
        order = np.argsort(label, kind="stable")
        names, first, count = np.unique(label[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(first, count)
        column = np.repeat(np.arange(len(names)), count)
        many = count > _MOST
        rows = int(count[~many].max(initial=1))
        self.crowds = Crowds(len(v))
        self._column = dict(zip(names.tolist(), range(len(names)), strict=True))
        self._name, self._lead = names, group[order[first]] if len(names) else names
        self._place = np.zeros(len(v), np.intp)
        self._room = np.empty(0, np.float32)
        self._member = np.full((rows, len(names)), -1)
        self._known = np.tile(_NO_CELL, (1, rows, len(names)))
        self._gram = np.zeros((rows, rows, len(names)), np.float32)
        few = ~np.repeat(many, count)
        self._member[rank[few], column[few]] = order[few]
        for y in np.flatnonzero(many).tolist():
            self._crowd(int(names[y]), y, order[first[y] : first[y] + count[y]], v)
        self._move_all()
        for i in range(rows):
            both = self._member[i] >= 0  # ranks are filled from the first
            cells = self._member[i, both]
            for j in range(i + 1):
                products = np.einsum("kd,kd->k", v[cells], v[self._member[j, both]])
                self._gram[i, j, both] = self._gram[j, i, both] = products
            self._known[:, i, both] = _known(self._gram[i, i, both], alpha[cells])

    def __len__(self) -> int:
        return len(self._column)

    @property
    def lead(self) -> Array:
        """(Y,) the positions of the leading cells."""
        return self._lead[: len(self)]

    @property
    def place(self) -> Array:
        """(K+,) the cells' places in a table (T, Y+), counted row after row.

        Those of crowds come after the table, in the order of cells.
        """
        return self._place

    @property
    def room(self) -> Array:
        """A number for each place; what earlier reads have left there."""
        places = self._member.size + (len(self._place) if self.crowds else 0)
        if len(self._room) != places:
            self._room = np.zeros(places, np.float32)
        return self._room

    @property
    def tables(self) -> tuple[Array, Array, Array]:
        """What reads look up, with the columns that are spare.

        The cells' positions (T, Y+); what is known of them (3, T, Y+): 0, or minus infinity where
        there is no cell, one over its length, and its weight; and their products with each other
        (T, T, Y+).
        """
        return self._member, self._known, self._gram

    def __contains__(self, label: int) -> bool:
        """Whether the label owns a cell."""
        return label in self._column

    def owner(self, cell: int) -> int:
        """The label that owns the cell at this position."""
        place, table = self._place[cell], self._member
        if place < table.size:
            return int(self._name[place % table.shape[1]])
        return int(self._name[self.crowds.columns[self.crowds.of_cell[cell]]])

    def update(self, label: int, cells: Array, v: Array, alpha: Array, group: Array) -> None:
        """The cells of the label are now those at the given positions."""
        rows = len(cells)
        if not rows:
            self._remove(label)
            return
        column = self._column.setdefault(label, len(self._column))
        self._make_room(rows if rows <= _MOST else 1, column + 1, len(v))
        self._name[column], self._lead[column] = label, group[cells[0]]
        if rows > _MOST:
            self._crowd(label, column, cells, v)
            return
        self.crowds.remove(label)
        self.crowds.leave(cells)
        self._member[:rows, column], self._member[rows:, column] = cells, -1
        self._place[cells] = np.arange(rows) * self._member.shape[1] + column
        own = v[cells]
        self._gram[:rows, :rows, column] = products = np.einsum("id,jd->ij", own, own)
        self._known[:, :rows, column] = _known(products.diagonal(), alpha[cells])
        self._known[:, rows:, column] = _NO_CELL[:, 0]

    def _crowd(self, label: int, column: int, cells: Array, v: Array) -> None:
        """The label has many cells."""
        self._member[:, column], self._known[..., column] = -1, _NO_CELL[:, 0]
        self._known[0, 0, column] = 0  # so that the table says zero of it, not NaN
        self.crowds.put(label, column, cells, v)
        self._place[cells] = self._member.size + cells

    def _find_places(self, columns: Array) -> None:
        """The cells of these columns have new places."""
        rows, width = self._member.shape
        cells, places = self._member[:, columns], np.arange(rows)[:, None] * width + columns
        self._place[cells[cells >= 0]] = places[cells >= 0]

    def _move_all(self) -> None:
        """The table has other measures, and all cells new places."""
        self._find_places(np.arange(self._member.shape[1]))
        crowded = np.flatnonzero(self.crowds.of_cell >= 0)
        self._place[crowded] = self._member.size + crowded

    def _remove(self, label: int) -> None:
        """The last column takes the place of the one that goes."""
        self.crowds.remove(label)
        gone = self._column.pop(label)
        last = len(self._column)
        if gone != last:
            self._column[int(self._name[last])] = gone
            self.crowds.move(int(self._name[last]), gone)
            for table in (self._name, self._lead, *self.tables):
                table[..., gone] = table[..., last]
            self._find_places(np.array([gone]))
        self._member[:, last], self._known[..., last] = -1, _NO_CELL[:, 0]

    def _make_room(self, rows: int, columns: int, cells: int) -> None:
        if cells > len(self._place):
            self._place = np.pad(self._place, (0, cells - len(self._place)))
            self.crowds.make_room(cells)
        below = (0, max(0, rows - self._member.shape[0]))
        have = self._member.shape[1]
        more = (0, max(4, have // 8) if columns > have else 0)
        if below[1] or more[1]:
            self._name, self._lead = np.pad(self._name, more), np.pad(self._lead, more)
            self._member = np.pad(self._member, (below, more), constant_values=-1)
            self._gram = np.pad(self._gram, (below, below, more))
            known = np.tile(_NO_CELL, (1, *self._member.shape))
            known[:, : self._known.shape[1], :have] = self._known
            self._known = known
            self._move_all()


def _known(squares: Array, alpha: Array) -> Array:
    """(3, K) what reads need of cells, given their squared lengths (K,) and weights (K,)."""
    known = np.zeros((3, len(alpha)), np.float32)
    # The product with a zero cell is zero, and so is its cosine, whatever its length counts as.
    known[1] = 1 / np.maximum(np.sqrt(squares), TINY)
    known[2] = alpha
    return known
