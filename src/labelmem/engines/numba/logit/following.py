"""What follows from a user's numbers and is kept beside them: never saved, made anew when asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import kernel
from labelmem.engines.numba.logit.arithmetic import inner
from labelmem.engines.numba.logit.layout import ANSWERS, CELLS, KNOWN, NEW, PAIRS, SLOTS, STALE
from labelmem.engines.numba.places import add_place, place_of

__all__ = [
    "chain",
    "cross",
    "crossed",
    "freshen",
    "measure_cell",
    "measure_slot",
    "open_slot",
    "put",
    "row_of",
    "subtract",
]


@kernel
def freshen(u: Any, c: Any) -> None:
    """See to what follows, if the user was loaded or grew."""
    t = u.counts
    if not t[STALE]:
        return
    t[NEW], t[STALE] = 0, 0
    u.table[:] = -1
    u.answers[:] = -1
    for y in range(t[SLOTS]):
        enter(u, y)
        measure_slot(u, c, y)
    for i in range(t[CELLS]):
        measure_cell(u, i)
    for a in range(t[ANSWERS]):
        add_place(a, u.answer, u.answers)
        u.first[a] = -1
    for pair in range(t[PAIRS]):
        chain(u, u.pair_of[pair], pair)


@kernel
def enter(u: Any, y: int) -> None:
    """Let a slot be found by its label."""
    add_place(y, u.label, u.table)
    new = u.label[y] >= u.counts[KNOWN]
    u.is_new[y] = np.float32(1.0) if new else np.float32(0.0)
    u.counts[NEW] += new


@kernel
def chain(u: Any, answer: int, pair: int) -> None:
    """Put a pair behind the others of an answer."""
    if u.first[answer] < 0:
        u.first[answer] = pair
    else:
        u.next[u.last[answer]] = pair
    u.last[answer], u.next[pair] = pair, -1


@kernel
def row_of(u: Any, label: int) -> int:
    """The first pair of an answer of the model, -1 if there is none."""
    answer = place_of(label, u.answer, u.counts[ANSWERS], u.answers)
    return u.first[answer] if answer >= 0 else -1


@kernel
def measure_slot(u: Any, c: Any, y: int) -> None:
    """What a slot's examples tell: their mean relative to the origin, and how far it counts."""
    count, centred, sums = u.count[y], u.centred[y], u.sums[y]
    for k in range(len(centred)):
        centred[k] = sums[k] / max(count, 1.0) - u.origin[k] if count > 0 else 0.0
    u.pull[y] = count / (count + c.pseudo_count)
    u.log_count[y] = math.log(np.float32(2.0) * np.float32(count) + np.float32(1.0))


@kernel
def measure_cell(u: Any, i: int) -> None:
    """The square of a cell's distance from the origin."""
    place, found = u.place[i], np.float32(0.0)
    for k in range(len(place)):
        found += place[k] * place[k]
    u.length[i] = found


@kernel
def open_slot(u: Any, c: Any, label: int) -> int:
    """The slot of a label, a new one if it has none."""
    y = place_of(label, u.label, u.counts[SLOTS], u.table)
    if y >= 0:
        return np.int64(y)
    y = u.counts[SLOTS]
    u.counts[SLOTS] += 1
    u.label[y], u.count[y], u.square[y] = label, 0.0, 0.0
    for k in range(u.counts[0]):
        u.sums[y, k], u.rows[y, k] = 0.0, 0.0
    enter(u, y)
    measure_slot(u, c, y)
    return np.int64(y)


@kernel
def put(u: Any, off: Any, placed: Any) -> None:
    """Where a key relative to the origin is placed: times R, which is 0 below its diagonal."""
    d = len(off)
    for k in range(d):
        placed[k] = 0.0
    for i in range(d):
        row, share = u.root[i], off[i]
        for k in range(i, d):
            placed[k] += share * row[k]


@kernel
def cross(u: Any, placed: Any, across: Any) -> None:
    """The same key times A = R R', from where it is placed."""
    for i in range(len(placed)):
        across[i] = inner(placed[i:], u.root[i, i:])


@kernel
def crossed(u: Any, i: int, off: Any) -> Any:
    """A cell's key relative to the origin into ``off``; the same times A."""
    subtract(u.key[i], u.origin, off)
    if not u.crossed[i]:
        placed = np.empty(len(off))
        put(u, off, placed)
        cross(u, placed, u.across[i])
        u.crossed[i] = 1
    return u.across[i]


@kernel
def subtract(x: Any, y: Any, out: Any) -> None:
    """Numbers of 32 bits less those of 64."""
    for k in range(len(x)):
        out[k] = np.float64(x[k]) - y[k]
