"""Several cells per label, one stream: Eq. 2 without making M.

M is a sum of a label's cells, so its product with h is the same sum of their products, and its
length follows from the products of the cells with each other: the label's Gram matrix, which only
a write to the label changes. Labels are columns here, their cells the rows of a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelmem.fast import Array, softmax

__all__ = ["GroupRead", "Groups"]

_MOST = 16  # cells of a label, beyond which the table would cost more than a second pass
_CANCELS = 0.02  # below this share of its cells' lengths, the length of M is taken from M itself


@dataclass(frozen=True)
class GroupRead:
    """Eq. 2 for all labels, without M itself; columns are labels."""

    weight: Array
    """(T, Y) the cells' shares, 0 where there is no cell."""
    dot: Array
    """(Y,) h with M."""
    size: Array
    """(Y,) the length of M."""


class Groups:
    """The labels that own cells, in columns, with their cells' positions and products.

    Parameters
    ----------
    v
        (K, d) the cells' contents.
    label, group
        (K,) the cells' labels and the positions of their leading cells.
    """

    def __init__(self, v: Array, label: Array, group: Array) -> None:
        order = np.argsort(label, kind="stable")
        names, first, count = np.unique(label[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(first, count)
        column = np.repeat(np.arange(len(names)), count)
        rows = int(count.max(initial=1))
        self.readable = rows <= _MOST
        if not self.readable:
            rows = 0  # such a table would grow with the square of a label's cells
        self._column = dict(zip(names.tolist(), range(len(names)), strict=True))
        self._name, self._lead = names, group[order[first]] if len(names) else names
        self._member = np.full((rows, len(names)), -1)
        self._nothing = np.full((rows, len(names)), -np.inf, v.dtype)
        self._gram = np.zeros((rows, rows, len(names)), v.dtype)
        if not self.readable:
            return
        self._member[rank, column], self._nothing[rank, column] = order, 0
        for i in range(rows):
            for j in range(i + 1):
                both = self._nothing[i] == 0  # ranks are filled from the first
                a, b = v[self._member[i, both]], v[self._member[j, both]]
                self._gram[i, j, both] = self._gram[j, i, both] = np.einsum("kd,kd->k", a, b)

    def __len__(self) -> int:
        return len(self._column)

    @property
    def lead(self) -> Array:
        """(Y,) the positions of the leading cells."""
        return self._lead[: len(self)]

    @property
    def member(self) -> Array:
        """(T, Y) the positions of the cells, -1 where there is none."""
        return self._member[:, : len(self)]

    @property
    def tables(self) -> tuple[Array, Array]:
        """(T, Y+) positions and (T, T, Y+) products, with the columns that are spare."""
        return self._member, self._gram

    @property
    def there(self) -> Array:
        """(T, Y) whether there is such a cell."""
        held: Array = self._nothing[:, : len(self)] == 0
        return held

    def update(self, label: int, cells: Array, v: Array, group: Array) -> None:
        """The cells of the label are now those at the given positions."""
        rows = len(cells)
        self.readable &= rows <= _MOST
        if not self.readable:
            return
        if not rows:
            self._remove(label)
            return
        column = self._column.setdefault(label, len(self._column))
        self._make_room(rows, column + 1)
        self._name[column], self._lead[column] = label, group[cells[0]]
        self._member[:, column], self._nothing[:, column] = -1, -np.inf
        self._member[:rows, column], self._nothing[:rows, column] = cells, 0
        own = v[cells]
        for i in range(rows):
            products = np.einsum("kd,d->k", own, own[i])
            self._gram[:rows, i, column] = self._gram[i, :rows, column] = products

    def _remove(self, label: int) -> None:
        """The last column takes the place of the one that goes."""
        gone = self._column.pop(label)
        last = len(self._column)
        if gone != last:
            self._column[int(self._name[last])] = gone
            for table in (self._name, self._lead, self._member, self._nothing, self._gram):
                table[..., gone] = table[..., last]

    def _make_room(self, rows: int, columns: int) -> None:
        below = (0, max(0, rows - self._member.shape[0]))
        have = self._member.shape[1]
        more = (0, max(4, have // 8) if columns > have else 0)
        if below[1] or more[1]:
            self._name, self._lead = np.pad(self._name, more), np.pad(self._lead, more)
            self._member = np.pad(self._member, (below, more), constant_values=-1)
            self._nothing = np.pad(self._nothing, (below, more), constant_values=-np.inf)
            self._gram = np.pad(self._gram, (below, below, more))

    def read(self, v: Array, dot: Array, cosine: Array, lam: float) -> GroupRead:
        """Eq. 2, given the products (K,) of the cells with h and their cosines."""
        member, labels = self.member, len(self)
        weight = softmax(lam * cosine[member] + self._nothing[:, :labels])
        square, reach = np.zeros(labels, dot.dtype), np.zeros(labels, dot.dtype)
        for i, w in enumerate(weight):
            own = w * w * self._gram[i, i, :labels]
            square += own
            reach += own
            for j in range(i):
                shared = (2 * w) * weight[j] * self._gram[i, j, :labels]
                square += shared
                reach += np.abs(shared)
        # Where a label's cells cancel, little is left of the products but their rounding.
        for column in np.flatnonzero(square < _CANCELS * reach):
            M = weight[:, column].dot(v[member[:, column]])
            square[column] = M @ M
        return GroupRead(weight, (weight * dot[member]).sum(axis=0), np.sqrt(square))
