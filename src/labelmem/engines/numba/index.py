"""Kernels over cells in lists, each list about a centre: which lists are near h, and their cells.

Lists lie one behind another in a pool of rows: list i has the ``count[i]`` rows from ``first[i]``
on, in the order of the cells' positions. A row is a cell's direction in whole numbers of 16 bits.
``known`` (3, rows) has one over its length, the cell's weight and its logarithm, ``names``
(3, rows) the cell's position, its label and the time it was written: what a read tells lies as it
is told.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import copy, kernel, log
from labelmem.engines.numba.bytes import vector_at
from labelmem.engines.numba.read import TINY, direction, normalise, products
from labelmem.narrow import MOST

__all__ = ["Cells", "Lists", "fill_rows", "look", "look_at", "move"]

_NOWHERE = -1


class Cells(NamedTuple):
    """One stream's cells: what the rows follow."""

    v: Any
    alpha: Any
    label: Any
    written: Any


class Lists(NamedTuple):
    """The pool."""

    first: Any
    count: Any
    rows: Any
    known: Any
    names: Any


@kernel
def _home_of(x: Any, centres: Any) -> int:
    """The centre with the largest cosine with ``x``."""
    near = np.empty(len(centres), np.float32)
    products(centres, x, near)
    best = 0
    for i in range(len(near)):
        if near[i] > near[best]:
            best = i
    return best


@kernel
def _put_row(
    row: int, cell: int, x: Any, alpha: float, label: int, written: int, lists: Lists
) -> None:
    """Let a row be that of a cell, which holds ``x`` (d,)."""
    top, square, at = np.float32(0.0), np.float32(0.0), lists.rows[row]
    for j in range(len(x)):
        top = max(top, abs(x[j]))
    scale = np.float32(MOST) / top if top > TINY * np.float32(MOST) else np.float32(0.0)
    for j in range(len(x)):
        at[j] = np.int16(np.rint(x[j] * scale))
    for j in range(len(x)):
        square += np.float32(at[j]) * np.float32(at[j])
    known, names = lists.known, lists.names
    known[0, row] = np.float32(1.0) / max(np.float32(math.sqrt(square)), TINY)
    known[1, row] = alpha
    known[2, row] = log(max(np.float32(alpha), TINY))
    names[0, row], names[1, row], names[2, row] = cell, label, written


@kernel
def fill_rows(at: Any, order: Any, cells: Cells, lists: Lists) -> None:
    """Put the cells ``order`` (k,) in the rows ``at`` (k,)."""
    for i in range(len(order)):
        cell = order[i]
        told = (cells.alpha[cell], cells.label[cell], cells.written[cell])
        _put_row(at[i], cell, cells.v[cell], *told, lists)


@kernel
def _row_of(cell: int, begin: int, end: int, names: Any) -> int:
    """The row of a cell in the list of those rows, or the one it would have."""
    while begin < end:
        middle = (begin + end) // 2
        if names[0, middle] < cell:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def _copy_row(source: int, target: int, lists: Lists) -> None:
    a, b = lists.rows[source], lists.rows[target]
    for j in range(len(a)):
        b[j] = a[j]
    for i in range(3):
        lists.known[i, target] = lists.known[i, source]
        lists.names[i, target] = lists.names[i, source]


@kernel
def _move(cell: int, cells: Cells, centres: Any, home: Any, room: Any, lists: Lists) -> int:
    """See :func:`move`."""
    old, new = home[cell], _home_of(cells.v[cell], centres)
    first, count = lists.first, lists.count
    if old != new:
        if count[new] == room[new]:
            return new
        if old != _NOWHERE:
            end = first[old] + count[old]
            for row in range(_row_of(cell, first[old], end, lists.names), end - 1):
                _copy_row(row + 1, row, lists)
            count[old] -= 1
        end = first[new] + count[new]
        for row in range(end, _row_of(cell, first[new], end, lists.names), -1):
            _copy_row(row - 1, row, lists)
        count[new] += 1
        home[cell] = new
        # The last row, if the cell comes behind all others, is still that of another list's cell.
        end = first[new] + count[new] - 1
    else:
        end = first[new] + count[new]
    row = _row_of(cell, first[new], end, lists.names)
    told = (cells.alpha[cell], cells.label[cell], cells.written[cell])
    _put_row(row, cell, cells.v[cell], *told, lists)
    return -1


@kernel
def move(
    cell: int,
    v: Any,
    alpha: Any,
    label: Any,
    written: Any,
    centres: Any,
    home: Any,
    room: Any,
    first: Any,
    count: Any,
    rows: Any,
    known: Any,
    names: Any,
) -> int:
    """A cell was written: put it in its list, taking it from another if it was there.

    Returns the list that must get room before this can be done; -1 if it is done. Tuples are made
    here: to hand over one takes a kernel twice as long as what is in it.
    """
    lists = Lists(first, count, rows, known, names)
    return _move(cell, Cells(v, alpha, label, written), centres, home, room, lists)


@kernel
def _nearest_lists(near: Any, count: Any, probes: int) -> Any:
    """The lists that are nearest and not empty, in their order."""
    chosen, found = np.empty(min(probes, len(near)), np.int64), 0
    for i in range(len(near)):
        if count[i] == 0 or (found == len(chosen) and near[i] <= near[chosen[found - 1]]):
            continue
        at = found if found < len(chosen) else found - 1
        found = min(found + 1, len(chosen))
        while at > 0 and near[chosen[at - 1]] < near[i]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = i
    return np.sort(chosen[:found])


@kernel
def _multiply(by: Any, x: Any) -> None:
    for i in range(len(x)):
        x[i] *= by[i]


@kernel
def _combine(a: Any, b: Any, lam: np.float32, delta: np.float32, x: Any) -> None:
    for i in range(len(x)):
        x[i] = lam * a[i] + delta * b[i]


@kernel
def look(
    h: Any, probes: int, lam: float, delta: float, centres: Any, lists: Lists
) -> tuple[Any, Any]:
    """Of the k cells in the lists nearest to ``h`` (d,), what is told of them.

    (3, k) positions, labels and times of writing; (3, k) weights, cosines and Eq. 3's s.
    """
    lam32, delta32 = np.float32(lam), np.float32(delta)
    near, total, begin = np.empty(len(centres), np.float32), 0, 0
    unit = direction(h)
    products(centres, unit, near)
    chosen = _nearest_lists(near, lists.count, probes)
    for i in chosen:
        total += lists.count[i]
    names, told = np.empty((3, total), np.int64), np.empty((3, total), np.float32)
    for i in chosen:
        first, last = lists.first[i], lists.first[i] + lists.count[i]
        end = begin + lists.count[i]
        cosine, x = told[1, begin:end], told[2, begin:end]
        products(lists.rows[first:last], unit, cosine)
        _multiply(lists.known[0, first:last], cosine)
        _combine(cosine, lists.known[2, first:last], lam32, delta32, x)
        copy(lists.known[1, first:last], told[0, begin:end])
        for j in range(3):
            copy(lists.names[j, first:last], names[j, begin:end])
        begin = end
    normalise(told[2])
    return names, told


@kernel
def look_at(
    address: int,
    probes: int,
    lam: float,
    delta: float,
    centres: Any,
    first: Any,
    count: Any,
    rows: Any,
    known: Any,
    names: Any,
) -> tuple[Any, Any]:
    """The same for the ``h`` (d,) that lies at an address, and what :class:`Lists` are made of."""
    lists = Lists(first, count, rows, known, names)
    return look(vector_at(address, centres.shape[1]), probes, lam, delta, centres, lists)
