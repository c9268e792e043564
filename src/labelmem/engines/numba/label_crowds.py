"""Labels with more cells than a table should have rows for: which of their cells is whose.

A table of all products of their cells would grow with the square of these; so their M is made, by
a second pass over their cells and over no others.
"""

from __future__ import annotations

import numpy as np

from labelmem.fast import Array

__all__ = ["Crowds"]


class Crowds:
    """The labels with many cells, numbered as they came.

    Parameters
    ----------
    cells
        How many cells there are.
    """

    def __init__(self, cells: int) -> None:
        self._number: dict[int, int] = {}
        self._column = np.empty(0, np.intp)
        self._of_cell = np.full(cells, -1)
        self._length = np.zeros(cells, np.float32)

    def __len__(self) -> int:
        return len(self._number)

    @property
    def columns(self) -> Array:
        """(C,) where their labels stand among all."""
        return self._column[: len(self)]

    @property
    def of_cell(self) -> Array:
        """(K+,) the number of a cell's crowd, -1 for all other cells."""
        return self._of_cell

    @property
    def length(self) -> Array:
        """(K+,) the lengths of their cells."""
        return self._length

    def make_room(self, cells: int) -> None:
        """There are so many cells now."""
        more = (0, cells - len(self._of_cell))
        self._of_cell = np.pad(self._of_cell, more, constant_values=-1)
        self._length = np.pad(self._length, more)

    def put(self, label: int, column: int, cells: Array, v: Array) -> None:
        """The cells of the label are now those at the given positions."""
        number = self._number.setdefault(label, len(self._number))
        if number == len(self._column):
            self._column = np.pad(self._column, (0, max(4, number)))
        self._column[number] = column
        self._of_cell[cells] = number
        own = v[cells]
        self._length[cells] = np.sqrt(np.einsum("kd,kd->k", own, own))

    def leave(self, cells: Array) -> None:
        """These cells belong to none of them."""
        if self._number:
            self._of_cell[cells] = -1

    def move(self, label: int, column: int) -> None:
        """The label, if it is one of them, stands elsewhere."""
        if label in self._number:
            self._column[self._number[label]] = column

    def remove(self, label: int) -> None:
        """The label is none of them any more; the last takes its number."""
        if label not in self._number:
            return
        gone, last = self._number.pop(label), len(self._number)
        self._of_cell[self._of_cell == gone] = -1
        if gone != last:
            other = next(name for name, number in self._number.items() if number == last)
            self._number[other], self._column[gone] = gone, self._column[last]
            self._of_cell[self._of_cell == last] = gone
