"""What follows from a user's numbers and is kept beside them: never saved, made anew when asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import part
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.logit.arithmetic import BLOCK
from labelmem.engines.numba.places import add_place, place_of

__all__ = ["cross", "freshen", "measure_cell", "measure_slot", "open_slot", "place_key", "slot_of"]


@part
def freshen(t: Any) -> None:
    """See to what follows, if the user was loaded or grew, or R is another one."""
    if not t[at.STALE, 0]:
        return
    t[at.STALE, 0], t[at.NEW, 0] = 0, 0
    table, answers = at.whole(t[at.TABLE]), at.whole(t[at.ANSWER_TABLE])
    for i in range(len(table)):
        table[i] = -1
    for i in range(len(answers)):
        answers[i] = -1
    for y in range(t[at.SLOTS, 0]):
        enter(t, y)
        measure_slot(t, y)
    for cell in range(t[at.CELLS, 0]):
        measure_cell(t, cell)
    answer, first = at.whole(t[at.ANSWER]), at.whole(t[at.FIRST])
    for a in range(t[at.ANSWERS, 0]):
        add_place(a, answer, answers)
        first[a] = -1
    of = at.whole(t[at.PAIR_OF])
    for pair in range(t[at.PAIRS, 0]):
        chain(t, of[pair], pair)


@part
def enter(t: Any, y: int) -> None:
    """Let a slot be found by its label."""
    label = at.whole(t[at.LABEL])
    add_place(y, label, at.whole(t[at.TABLE]))
    new = label[y] >= t[at.KNOWN, 0]
    at.single(t[at.IS_NEW])[y] = 1 if new else 0
    t[at.NEW, 0] += new


@part
def chain(t: Any, answer: int, pair: int) -> None:
    """Put a pair behind the others of an answer."""
    first, last, following = at.whole(t[at.FIRST]), at.whole(t[at.LAST]), at.whole(t[at.NEXT])
    if first[answer] < 0:
        first[answer] = pair
    else:
        following[last[answer]] = pair
    last[answer], following[pair] = pair, -1


@part
def slot_of(t: Any, label: Any) -> Any:
    """The slot of a label, -1 if it has none."""
    return np.int64(place_of(label, at.whole(t[at.LABEL]), t[at.SLOTS, 0], at.whole(t[at.TABLE])))


@part
def open_slot(t: Any, label: Any) -> Any:
    """The slot of a label, a new one if it has none."""
    y = slot_of(t, label)
    if y >= 0:
        return y
    y = t[at.SLOTS, 0]
    t[at.SLOTS, 0] += 1
    at.whole(t[at.LABEL])[y] = label
    at.double(t[at.COUNT])[y] = at.double(t[at.SQUARE])[y] = 0.0
    sums, rows = at.double_rows(t[at.SUMS])[y], at.double_rows(t[at.ROWS])[y]
    for k in range(len(sums)):
        sums[k] = rows[k] = 0.0
    enter(t, y)
    measure_slot(t, y)
    return y


@part
def measure_slot(t: Any, y: int) -> None:
    """What a slot's examples tell: their mean relative to the origin, and how far it counts."""
    count, origin = at.double(t[at.COUNT])[y], at.double(t[at.ORIGIN])
    centred, sums = at.double_rows(t[at.CENTRED])[y], at.double_rows(t[at.SUMS])[y]
    for k in range(len(centred)):
        centred[k] = sums[k] / max(count, 1.0) - origin[k] if count > 0 else 0.0
    at.double(t[at.PULL])[y] = count / (count + at.double(t[at.OPTIONS])[at.PSEUDO_COUNT])
    twice = np.float32(2.0) * np.float32(count)
    at.single(t[at.LOG_COUNT])[y] = math.log(twice + np.float32(1.0))


@part
def measure_cell(t: Any, cell: int) -> None:
    """The square of a cell's distance from the origin."""
    place, found = at.single_rows(t[at.PLACE])[cell], np.float32(0.0)
    for k in range(len(place)):
        found += place[k] * place[k]
    at.single(t[at.LENGTH])[cell] = found


@part
def place_key(t: Any, off: Any, placed: Any) -> None:
    """Where a key relative to the origin is placed: times R, which is 0 below its diagonal."""
    root, d = at.double_rows(t[at.ROOT]), np.uint64(len(off))
    for k in range(d):
        placed[k] = 0.0
    for i in range(d):
        share = off[i]
        for k in range(i - i % BLOCK, d):
            placed[k] += share * root[i, k]


@part
def cross(t: Any, placed: Any, across: Any) -> None:
    """The same key times A = R R', from where it is placed."""
    root, d = at.double_rows(t[at.ROOT]), np.uint64(len(placed))
    for i in range(d):
        found = 0.0
        for k in range(i - i % BLOCK, d):
            found += placed[k] * root[i, k]
        across[i] = found
