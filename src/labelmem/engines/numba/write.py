"""Kernels that write to one stream's cells, one of them for each label."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import inlined, kernel, largest, total
from labelmem.engines.numba.bytes import vector_at
from labelmem.engines.numba.places import add_place, drop_place, place_of
from labelmem.engines.numba.read import measure, unit_of
from labelmem.narrow import MOST, STRIDE

__all__ = ["NOTHING", "REFUSED", "cell_for", "margin_of", "put"]
__all__ += ["write_cell", "write_lone"]

NOTHING, REFUSED = -1, -2
"""Answers of a write: there was no loss, so nothing was written; h is not finite."""


@inlined
def margin_of(P: Any, y: int, margin: float) -> tuple[Any, Any]:
    """:func:`labelmem.functional.margin_loss` for one stream: whether there is a loss, P wrong."""
    p_y = P[y] if y < len(P) else np.float32(0.0)
    best = max(largest(P[:y]), largest(P[y + 1 :]), np.float32(0.0))
    if p_y <= 0 or margin == math.inf:
        return True, p_y < best
    if best <= 0:
        return False, False
    lead = np.float32(math.log(p_y)) - np.float32(math.log(best))
    return np.float32(margin) - lead > 0, p_y < best


@inlined
def _least(written: Any, alpha: Any, born: Any, used: int, oldest: bool) -> int:
    """Rule 5: the cell to give up, by time where that counts, weight, age and position."""
    found = 0
    for cell in range(1, used):
        if oldest and written[cell] != written[found]:
            if written[cell] < written[found]:
                found = cell
        elif alpha[cell] != alpha[found]:
            if alpha[cell] < alpha[found]:
                found = cell
        elif born[cell] < born[found]:
            found = cell
    return found


@inlined
def put(v: Any, cell: int, merge: bool, weight: float, h: Any, turn: int) -> None:
    """Let a cell hold ``weight`` times ``h``, beside what it holds if that is to ``merge``.

    ``turn`` says how often it was written before: cells of 16 bits are rounded in turns, as
    :func:`labelmem.narrow.narrowed` does it.
    """
    share, dim = np.float32(weight), len(h)
    if v.shape[1] == dim:
        for j in range(dim):
            v[cell, j] = v[cell, j] + share * h[j] if merge else share * h[j]
        return
    before, top = unit_of(v, cell, dim) if merge else np.float32(0.0), np.float32(0.0)
    entry = np.empty(dim, np.float32)
    for j in range(dim):
        entry[j] = before * np.float32(v[cell, j]) + share * h[j]
    for j in range(dim):
        top = max(top, abs(entry[j]))
    unit = top / np.float32(MOST)
    for j in range(dim):
        units = entry[j] / (unit if unit > 0 else np.float32(1.0))
        at = (turn * ((j + 1) * STRIDE % 2**32) + 2**31) % 2**32
        units = math.floor(units + np.float32(at >> 8) / np.float32(2**24))
        v[cell, j] = max(min(units, np.float32(MOST)), np.float32(-MOST))
    bits = np.float32(unit).view(np.int32)
    v[cell, dim], v[cell, dim + 1] = np.int16(bits), np.int16(bits >> np.int32(16))


@inlined
def cell_for(
    y: int,
    label: Any,
    written: Any,
    alpha: Any,
    born: Any,
    used: int,
    table: Any,
    capacity: int,
    oldest: bool,
) -> int:
    """The position that a write changes: the label's own, a spare one, or the one to give up."""
    cell: int = place_of(y, label, used, table)
    if cell >= 0:
        return cell
    return _least(written, alpha, born, used, oldest) if capacity and used >= capacity else used


@inlined
def write_cell(
    cells: Any, cell: int, h: Any, y: int, now: int, bounds: Any, log_fades: Any, decay: float
) -> None:
    """The write rules for one cell per label, at the time ``now`` and the position for it."""
    v, alpha, label, written, born, writes, rates, used, known, size, table = cells
    if cell < used[0] and label[cell] == y:
        put(v, cell, True, 1.0, h, writes[cell])
        alpha[cell] = np.float32(decay) * alpha[cell] + np.float32(1.0)
        gone = np.float32(now - written[cell])
        for i in range(len(log_fades)):
            rates[cell, i] = rates[cell, i] * np.float32(math.exp(log_fades[i] * gone)) + 1
        writes[cell] += 1
    else:
        if cell < used[0]:
            drop_place(cell, label, table)
        else:
            used[0] += 1
        put(v, cell, False, 1.0, h, 0)
        alpha[cell], writes[cell], label[cell], born[cell] = 1, 1, y, now
        add_place(cell, label, table)
        for i in range(len(log_fades)):
            rates[cell, i] = 1
    written[cell] = now
    measure(v, alpha, bounds, cell, cell + 1, known, size)


@kernel
def write_lone(
    v: Any,
    alpha: Any,
    label: Any,
    written: Any,
    born: Any,
    writes: Any,
    rates: Any,
    used: Any,
    time: Any,
    known: Any,
    size: Any,
    table: Any,
    bounds: Any,
    log_fades: Any,
    address: int,
    y: int,
    address_of_P: int,
    width: int,
    margin: float,
    decay: float,
    capacity: int,
    oldest: bool,
) -> int:
    """:func:`write_cell` where there is a loss: the position, or why there is none.

    ``used`` and ``time`` (1,) move on. The vector lies at an ``address``, and so does the P of that
    ``width`` whose margin is asked for, unless that is -1. There is room for one more cell, unless
    that would be beyond ``capacity``. ``table`` tells where labels lie, if there are many.
    """
    h = vector_at(address, bounds[-1])
    if not math.isfinite(total(h)):
        for j in range(len(h)):
            if not math.isfinite(h[j]):
                return REFUSED
    time[0] += 1
    if width >= 0 and not margin_of(vector_at(address_of_P, width), y, margin)[0]:
        return NOTHING
    cells = (v, alpha, label, written, born, writes, rates, used, known, size, table)
    cell: int = cell_for(y, label, written, alpha, born, used[0], table, capacity, oldest)
    write_cell(cells, cell, h, y, time[0], bounds, log_fades, decay)
    return cell
