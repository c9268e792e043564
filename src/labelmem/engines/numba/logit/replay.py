"""Cells that are replayed: their votes are set anew and the rows corrected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import kernel
from labelmem.engines.numba.logit.arithmetic import inner, products, softmax64
from labelmem.engines.numba.logit.evidence import gather, listen, nearness, offsets, tame, weigh
from labelmem.engines.numba.logit.following import crossed, open_slot
from labelmem.engines.numba.logit.layout import CELLS, DIM, KNOWN, LISTED, NEW, SLOTS, VOTES
from labelmem.engines.numba.places import place_of

__all__ = ["replay"]

_TURN, _VOTES = 6, 6  # where the number of the next cell stands, and the weight of the votes


@kernel
def _turn(u: Any, c: Any, written: int) -> Any:
    """The cells whose turn it is, and the one just written, in order."""
    n, turn = u.counts[CELLS], np.int64(u.numbers[_TURN])
    asked = min(np.int64(c.revisits), n)
    u.numbers[_TURN] = (turn + asked) % max(n, 1)
    cells, used = np.empty(asked + 1, np.int64), 0
    for i in range(asked + 1):
        cell, there = (turn + i) % max(n, 1) if i < asked else written, i == asked and written < 0
        at = used
        while at > 0 and cells[at - 1] >= cell:
            there = there or cells[at - 1] == cell
            at -= 1
        if not there:
            for k in range(used, at, -1):
                cells[k] = cells[k - 1]
            cells[at] = cell
            used += 1
    return cells[:used]


@kernel
def _find(label: Any, used: int, wanted: int) -> int:
    """Where a label stands among the first, -1 if it does not."""
    at = -1
    for y in range(used):
        at = max(at, y if label[y] == wanted else -1)
    return at


@kernel
def _candidates(u: Any, cells: Any, column: Any, label: Any) -> int:
    """Where the labels that cells list stand (J, t), those without a slot behind the slots.

    Their labels come to the beginning of ``label``, sorted; told is how many there are.
    """
    m, extra = u.counts[SLOTS], 0
    for j in range(len(cells)):
        listed = u.listed[cells[j]]
        for i in range(len(listed)):
            wanted = listed[i]
            column[j, i] = place_of(wanted, u.label, m, u.table)
            if column[j, i] < 0 and _find(label, extra, wanted) < 0:
                at = extra
                while at > 0 and label[at - 1] > wanted:
                    label[at] = label[at - 1]
                    at -= 1
                label[at] = wanted
                extra += 1
    for j in range(len(cells)):
        for i in range(column.shape[1]):
            if column[j, i] < 0:
                column[j, i] = m + _find(label, extra, u.listed[cells[j], i])
    return extra


@kernel
def _vote(c: Any, scores: Any, own: Any, slot: int, believed: float, spare: Any) -> None:
    """Move the votes ``own`` (C,) of a cell to what puts it right."""
    for _ in range(3):
        softmax64(scores, spare)
        for y in range(len(own)):
            wanted = -spare[y] if y != slot else 1.0 - spare[y]
            spare[y] = (believed * wanted - own[y]) / (1.0 + c.strength / 2.0)
        for y in range(len(own)):
            own[y] += spare[y]
        for y in range(len(own)):
            scores[y] += c.strength * spare[y]


@kernel
def _keep(c: Any, own: Any, slot: int, kept: Any, votes: Any) -> None:
    """The largest of some votes (C,), that for the cell's own label first; the rest is 0."""
    said, used = np.float32(c.said), 1
    kept[0], votes[0] = slot, own[slot]
    for k in range(1, len(kept)):
        kept[k], votes[k] = slot, 0.0
    for y in range(len(own) - 1):
        size = abs(own[y])
        if np.float32(size) <= said or y == slot:
            continue
        if used == len(kept):
            if used == 1 or size <= abs(votes[used - 1]):
                continue
            used -= 1
        at = used
        while at > 1 and abs(votes[at - 1]) < size:
            votes[at], kept[at] = votes[at - 1], kept[at - 1]
            at -= 1
        votes[at], kept[at] = own[y], y
        used += 1


@kernel
def _correct(u: Any, c: Any, off: Any, across: Any, error: Any) -> None:
    """Move the rows by the errors (J, m) of some keys."""
    d, few = u.counts[DIM], len(off) - len(off) % 3
    for j in range(len(off)):
        length = max(inner(across[j], off[j]), 1e-9)
        for k in range(d):
            across[j, k] *= c.rate / length
    for y in range(error.shape[1]):
        row = u.rows[y]
        for k in range(d):
            row[k] *= c.kept
        for j in range(0, few, 3):
            a0, a1, a2 = across[j], across[j + 1], across[j + 2]
            e0, e1, e2 = error[j, y], error[j + 1, y], error[j + 2, y]
            for k in range(d):
                row[k] += e0 * a0[k] + e1 * a1[k] + e2 * a2[k]
        for j in range(few, len(off)):
            last = across[j]
            for k in range(d):
                row[k] += error[j, y] * last[k]


@kernel
def replay(u: Any, c: Any, written: int) -> None:
    """Replay the cells whose turn it is, and the one just written unless it is -1."""
    cells = _turn(u, c, written)
    t, J = u.counts, len(cells)
    if J == 0:
        return
    d, m, noise, labels = t[DIM], t[SLOTS], u.numbers[5], t[KNOWN] + t[NEW]
    keys, places = np.empty((2, J, d)), np.empty((J, d), np.float32)
    off, across = keys[0], keys[1]
    for j in range(J):
        found = crossed(u, cells[j], off[j])
        for k in range(d):
            across[j, k], places[j, k] = found[k], u.place[cells[j], k]
    near = np.empty((J, t[CELLS]), np.float32)
    nearness(u, c, places, near)
    column, other = np.empty((J, t[LISTED]), np.int64), np.empty(J * t[LISTED], np.int64)
    extra = _candidates(u, cells, column, other)
    n = m + extra + 1
    told, F, wide = np.empty((3, J, m)), np.empty((len(u.theta), n)), np.empty((4, n))
    along, linear, error = told[0], told[1], told[2]
    products(u.centred, m, across, along)
    products(u.rows, m, off, linear)
    offset, scores, own, alone = wide[0], wide[1], wide[2], wide[3]
    offsets(u, c, extra, offset)
    theta = u.theta.copy()
    theta[_VOTES] = 1.0  # votes are set as if they counted in full
    factor, doubted = np.float32(tame(u, c, 0.0)), 0.0
    single, spare = np.empty((3, n), np.float32), np.empty((3, n), np.float32)
    votes, base, means = single[0, :m], single[1], single[2, :m]
    kept, size = np.empty((J, t[VOTES]), np.int64), np.empty((J, t[VOTES]))
    for j in range(J):
        cell = cells[j]
        slot, right = u.slot[cell], factor * u.rest[cell]
        for y in range(n):
            base[y] = right
        for i in range(t[LISTED]):
            base[column[j, i]] = factor * u.value[cell, i]
        listen(u, near[j], votes)
        length, first = inner(across[j], off[j]), column[j, 0]
        answer, whole = u.listed[cell, 0], u.total[cell]
        heard = (votes, linear[j], means, spare, F)
        gather(u, c, base, first, answer, whole, along[j], length, slot, *heard)
        weigh(theta, F, offset, scores)
        for y in range(n):
            own[y] = 0.0
        for k in range(t[VOTES]):
            own[u.about[cell, k]] += np.float64(u.vote[cell, k])
        for y in range(n):
            alone[y] = scores[y] - c.strength * own[y]
        softmax64(alone, alone)  # without what the cell itself says
        sure = (1.0 - noise) * alone[slot]
        believed = sure / (sure + noise / labels)
        doubted += (1.0 - believed) / J
        believed = max(believed, c.believed)
        for y in range(m):
            error[j, y] = -believed * alone[y]
        error[j, slot] += believed
        _vote(c, scores, own, slot, believed, alone)
        _keep(c, own, slot, kept[j], size[j])
    seen = max(u.numbers[0] + u.numbers[1], 1.0)
    change = min(1.0, t[CELLS] / seen) * doubted - noise + c.pull * (c.noise - noise)
    u.numbers[5] = min(max(noise + change / c.mix, c.least_noise), c.most_noise)
    _correct(u, c, off, across, error)
    for j in range(J):
        for k in range(t[VOTES]):
            y = kept[j, k]
            u.about[cells[j], k] = y if y < m else open_slot(u, c, other[y - m])
            u.vote[cells[j], k] = size[j, k]
