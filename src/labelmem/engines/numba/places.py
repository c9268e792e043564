"""Where each label's cell lies, found without passing over all labels: for memories of many cells.

A table of positions, twice as long as there are cells or more, -1 where it is free. A label's
position stands at the place its number leads to, or at the next free one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import inlined, kernel

__all__ = ["add_place", "drop_place", "fill_table", "place_of", "table_of", "table_size"]

_FEW = 1024  # cells up to which passing over the labels takes no longer
_SPREAD = np.uint64(11400714819323198485)  # 2**64 over the golden ratio


def table_size(positions: int) -> int:
    """How long the table of so many positions is; 0 if they are few."""
    return 0 if positions <= _FEW else 2 << int(positions - 1).bit_length()


def table_of(label: Any, used: int) -> Any:
    """The table of the first ``used`` labels (K,), with room for all; empty if they are few.

    Examples
    --------
    >>> label = np.arange(5000) * 7
    >>> table = table_of(label, 4000)
    >>> place_of(7 * 3999, label, 4000, table), place_of(7 * 4000, label, 4000, table)
    (3999, -1)
    """
    table = np.full(table_size(len(label)), -1, np.int32)
    fill_table(table, label, used)
    return table


@inlined
def _start(y: int, size: int) -> Any:
    """Where a label's number leads to; the size is a power of two."""
    return np.int64((np.uint64(y) * _SPREAD) >> np.uint64(32)) & (size - 1)


@kernel
def fill_table(table: Any, label: Any, used: int) -> None:
    """Put the positions of the first ``used`` labels in an empty table."""
    for cell in range(used):
        add_place(cell, label, table)


@inlined
def place_of(y: int, label: Any, used: int, table: Any) -> Any:
    """The position of the cell of ``y`` among the first ``used``, -1 if there is none."""
    if len(table) == 0:
        for cell in range(used):
            if label[cell] == y:
                return cell
        return -1
    at = _start(y, len(table))
    while table[at] >= 0 and label[table[at]] != y:
        at = (at + 1) & (len(table) - 1)
    return np.int64(table[at])


@inlined
def add_place(cell: int, label: Any, table: Any) -> None:
    """Put the position of a new label's cell in the table, where there is one."""
    if len(table) == 0:
        return
    at = _start(label[cell], len(table))
    while table[at] >= 0:
        at = (at + 1) & (len(table) - 1)
    table[at] = cell


@inlined
def drop_place(cell: int, label: Any, table: Any) -> None:
    """Take a position out, before its label changes; what came behind it moves up."""
    if len(table) == 0:
        return
    last = len(table) - 1
    free = _start(label[cell], len(table))
    while table[free] != cell:
        free = (free + 1) & last
    at = (free + 1) & last
    while table[at] >= 0:
        start = _start(label[table[at]], len(table))
        if ((at - start) & last) >= ((at - free) & last):
            table[free] = table[at]
            free = at
        at = (at + 1) & last
    table[free] = -1
