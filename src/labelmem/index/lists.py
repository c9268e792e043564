"""Cells in lists, each list about a centre, with every cell's direction beside it.

A list keeps copies of its cells' directions one after another, so that a look at it is one pass
over consecutive bytes; picked from among all cells they would take several times as long. Lists are
in the order of the cells' positions. So they depend on the cells alone, not on how they came to be.
"""

from __future__ import annotations

import numpy as np

from labelmem.fast import Array
from labelmem.index.centres import nearest, unit

__all__ = ["Lists"]

_NOWHERE = -1


class Lists:
    """The cells ``v`` (k, d), each in the list of its nearest centre.

    Parameters
    ----------
    v
        The cells' contents.
    centres
        (lists, d) unit vectors.

    Examples
    --------
    >>> lists = Lists(np.array([[1.0, 0.1], [0.1, 1.0], [2.0, 0.0]]), np.eye(2))
    >>> lists.look(np.array([1.0, 0.0]), probes=1)[0].tolist()
    [0, 2]
    >>> lists.follow(np.array([2]), np.array([[0.0, 3.0]]))
    >>> lists.look(np.array([1.0, 0.0]), probes=1)[0].tolist()
    [0]
    """

    def __init__(self, v: Array, centres: Array) -> None:
        self.centres = centres
        self._home = nearest(v, centres)
        order = np.argsort(self._home, kind="stable")
        ends = np.searchsorted(self._home[order], np.arange(1, len(centres)))
        self._cells = np.split(order, ends)
        self._unit = [unit(v[cells]) for cells in self._cells]
        self._count = np.array([len(cells) for cells in self._cells])

    def look(self, h: Array, probes: int) -> tuple[Array, Array]:
        """The positions of the cells in the lists nearest to ``h`` (d,), and their cosines."""
        length = np.sqrt(h @ h)
        h = h / length if length > 0 else h
        near = np.where(self._count > 0, self.centres @ h, -np.inf)
        lists = np.arange(len(near))
        if probes < len(near):
            lists = np.sort(np.argpartition(near, -probes)[-probes:])
        # Row by row: a blocked product is made for matrices in the cache.
        cosines = [np.einsum("kd,d->k", self._unit[i], h) for i in lists]
        return np.concatenate([self._cells[i] for i in lists]), np.concatenate(cosines)

    def follow(self, cells: Array, v: Array) -> None:
        """The cells at these positions now hold ``v`` (k, d); positions may be new."""
        new, direction = nearest(v, self.centres), unit(v)
        beyond = int(cells.max()) + 1 - len(self._home)
        if beyond > 0:
            spare = max(beyond, len(self._home) // 8)
            self._home = np.pad(self._home, (0, spare), constant_values=_NOWHERE)
        old = self._home[cells]
        moves = old != new
        for i in np.unique(old[moves & (old != _NOWHERE)]):
            self._leave(i, cells[moves & (old == i)])
        for i in np.unique(new[~moves]):
            stay = ~moves & (new == i)
            self._unit[i][np.searchsorted(self._cells[i], cells[stay])] = direction[stay]
        for i in np.unique(new[moves]):
            come = moves & (new == i)
            self._join(i, cells[come], direction[come])
        self._home[cells] = new

    def _leave(self, i: int, cells: Array) -> None:
        at = np.searchsorted(self._cells[i], cells)
        self._cells[i] = np.delete(self._cells[i], at)
        self._unit[i] = np.delete(self._unit[i], at, axis=0)
        self._count[i] -= len(cells)

    def _join(self, i: int, cells: Array, direction: Array) -> None:
        at = np.searchsorted(self._cells[i], cells)
        self._cells[i] = np.insert(self._cells[i], at, cells)
        self._unit[i] = np.insert(self._unit[i], at, direction, axis=0)
        self._count[i] += len(cells)
