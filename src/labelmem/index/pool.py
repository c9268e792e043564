"""The lists of an index in one pool of rows, for compiled kernels: each about its centre.

Rows have 16 bits: a look passes over half the bytes. That is within 1e-5 of a cosine, far less than
what a read loses by looking at some lists only.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from labelmem.engines.numba.index import Cells, Lists, fill_rows, look, look_at, move
from labelmem.fast import Array
from labelmem.index.centres import nearest

__all__ = ["Pool"]

_NOWHERE = -1


class Pool:
    """One stream's cells, each in the list of its nearest centre.

    Parameters
    ----------
    cells
        All of them and what may be spare, of 32 bits.
    used
        How many there are.
    centres
        (lists, d) unit vectors.

    Examples
    --------
    >>> v = np.array([[1.0, 0.1], [0.1, 1.0], [2.0, 0.0]], np.float32)
    >>> cells = Cells(v, np.ones(3, np.float32), np.arange(3), np.arange(3, dtype=np.int32))
    >>> pool = Pool(cells, 3, np.eye(2, dtype=np.float32))
    >>> pool.look(np.float32([1, 0]), probes=1)[0].tolist()
    [0, 2]
    >>> v[2] = 0, 3
    >>> pool.follow(2, cells)
    >>> pool.look(np.float32([1, 0]), probes=1)[0].tolist()
    [0]
    """

    def __init__(self, cells: Cells, used: int, centres: Array) -> None:
        self.centres = np.ascontiguousarray(centres, np.float32)
        self._home = nearest(cells.v[:used], self.centres)
        order = np.argsort(self._home, kind="stable")
        self._lay_out(np.bincount(self._home, minlength=len(centres)), cells.v.shape[1])
        count = self._lists.count
        rank = np.arange(used) - np.repeat(np.cumsum(count) - count, count)
        fill_rows(np.repeat(self._lists.first, count) + rank, order, cells, self._lists)

    def _lay_out(self, count: Array, dim: int) -> None:
        """Lists one behind another, each with room for an eighth more; so much is spare behind."""
        self._room = count + count // 8 + 4
        self._end = int(self._room.sum())
        size = self._end + self._end // 8
        self._lists = Lists(
            np.cumsum(self._room) - self._room,
            count,
            np.zeros((size, dim), np.int16),
            np.zeros((3, size), np.float32),
            np.zeros((3, size), np.int64),
        )

    def look(self, h: Array, probes: int) -> tuple[Array, Array]:
        """The positions of the cells in the lists nearest to ``h`` (d,), and their cosines."""
        names, told = self.read(h, probes, 0.0, 0.0)
        return names[0], told[1]

    def read(self, h: Array, probes: int, lam: float, delta: float) -> tuple[Array, Array]:
        """Eq. 2 and 3, each cell being the only one of its label: ``look``."""
        return look(h, probes, lam, delta, self.centres, self._lists)

    def read_there(self, h: Tensor, probes: int, lam: float, delta: float) -> tuple[Array, Array]:
        """The same for ``h`` (1, d) that is :func:`labelmem.fast.addressable`."""
        return look_at(h.data_ptr(), probes, lam, delta, self.centres, *self._lists)

    def follow(self, cell: int, cells: Cells) -> None:
        """The cell at this position, which may be new, was written."""
        if cell >= len(self._home):
            spare = max(cell + 1 - len(self._home), len(self._home) // 8)
            self._home = np.pad(self._home, (0, spare), constant_values=_NOWHERE)
        while True:
            full = move(cell, *cells, self.centres, self._home, self._room, *self._lists)
            if full < 0:
                return
            self._make_room(full)

    def _make_room(self, i: int) -> None:
        """Move a full list behind the others, with twice the room; if there is none, move all."""
        lists, room = self._lists, 2 * int(self._room[i])
        count, first = int(lists.count[i]), int(lists.first[i])
        if self._end + room > len(lists.rows):
            self._move_all()  # which makes room in every list
            return
        there, here = slice(self._end, self._end + count), slice(first, first + count)
        for table in (lists.rows, lists.known.T, lists.names.T):
            table[there] = table[here]
        lists.first[i], self._room[i], self._end = self._end, room, self._end + room

    def _move_all(self) -> None:
        old = self._lists
        self._lay_out(old.count, old.rows.shape[1])
        for i, count in enumerate(old.count.tolist()):
            here, there = old.first[i], self._lists.first[i]
            for table, before in (
                (self._lists.rows, old.rows),
                (self._lists.known.T, old.known.T),
                (self._lists.names.T, old.names.T),
            ):
                table[there : there + count] = before[here : here + count]

    def contents(self, i: int) -> tuple[Array, Array]:
        """The positions of the cells in list ``i``, and their directions."""
        lists = self._lists
        own = slice(lists.first[i], lists.first[i] + lists.count[i])
        return lists.names[0, own], lists.rows[own] * lists.known[0, own, None]
