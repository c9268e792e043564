"""Kernels that write to one stream's cells, one of them for each label."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import kernel, largest, total
from labelmem.compiled_read import measure

__all__ = ["NOTHING", "REFUSED", "margin_of", "write_lone"]

NOTHING, REFUSED = -1, -2
"""Answers of a write: there was no loss, so nothing was written; h is not finite."""


@kernel
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


@kernel
def _place_of(y: int, label: Any, used: int) -> int:
    for cell in range(used):
        if label[cell] == y:
            return cell
    return -1


@kernel
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
    bounds: Any,
    log_fades: Any,
    h: Any,
    y: int,
    P: Any,
    believed: bool,
    margin: float,
    decay: float,
    capacity: int,
    oldest: bool,
) -> int:
    """The write rules for one cell per label: the position written to, or why there is none.

    ``used`` and ``time`` (1,) move on. Whether ``P`` was ``believed`` decides if its margin is
    asked for; there is room for one more cell, unless that would be beyond ``capacity``.
    """
    if not math.isfinite(total(h)):
        for j in range(len(h)):
            if not math.isfinite(h[j]):
                return REFUSED
    time[0] += 1
    if believed and not margin_of(P, y, margin)[0]:
        return NOTHING
    now = time[0]
    cell = _place_of(y, label, used[0])
    if cell >= 0:
        for j in range(len(h)):
            v[cell, j] += h[j]
        alpha[cell] = np.float32(decay) * alpha[cell] + np.float32(1.0)
        gone = np.float32(now - written[cell])
        for i in range(len(log_fades)):
            rates[cell, i] = rates[cell, i] * np.float32(math.exp(log_fades[i] * gone)) + 1
        writes[cell] += 1
    else:
        if capacity and used[0] >= capacity:
            cell = _least(written, alpha, born, used[0], oldest)
        else:
            cell = used[0]
            used[0] += 1
        for j in range(len(h)):
            v[cell, j] = h[j]
        alpha[cell], writes[cell], label[cell], born[cell] = 1, 1, y, now
        for i in range(len(log_fades)):
            rates[cell, i] = 1
    written[cell] = now
    measure(v, alpha, bounds, cell, cell + 1, known, size)
    return cell
