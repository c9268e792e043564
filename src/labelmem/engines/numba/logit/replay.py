"""Cells that are replayed: their votes are set anew and the rows corrected."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import part
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.logit.arithmetic import SIX, add_products, inner, products, softmax64
from labelmem.engines.numba.logit.evidence import become_near, gather, listen, offsets, tame, weigh
from labelmem.engines.numba.logit.following import cross, open_slot, place_key, slot_of
from labelmem.logit_memory.options import FEATURES
from labelmem.logit_memory.user import _LARGEST, _LEAST, _MIX, _PULL, _SAID

__all__ = ["replay"]

_VOTES = FEATURES.index("votes")


@part
def _turn(t: Any, written: int, cells: Any) -> int:
    """How many cells have their turn, that just written with them: in order in ``cells``."""
    n, numbers, used = t[at.CELLS, 0], at.double(t[at.NUMBERS]), 0
    asked, turn = min(len(cells) - 1, n), np.int64(numbers[6])
    numbers[6] = (turn + asked) % max(n, 1)
    for i in range(asked + 1):
        cell, place = (turn + i) % max(n, 1) if i < asked else written, used
        while place > 0 and cells[place - 1] > cell:
            place -= 1
        if cell >= 0 and not (place > 0 and cells[place - 1] == cell):
            for k in range(used, place, -1):
                cells[k] = cells[k - 1]
            cells[place] = cell
            used += 1
    return used


@part
def _find(label: Any, used: int, wanted: int) -> int:
    """Where a label stands among the first, -1 if it does not."""
    place = -1
    for y in range(used):
        place = max(place, y if label[y] == wanted else -1)
    return place


@part
def _candidates(t: Any, cells: Any, column: Any, label: Any) -> int:
    """Where the labels that cells list stand (J, t), those without a slot behind the slots.

    Their labels come to the beginning of ``label``, sorted; told is how many there are.
    """
    m, extra, listed = t[at.SLOTS, 0], 0, at.whole_rows(t[at.LISTED])
    for j in range(len(cells)):
        for i in range(column.shape[1]):
            wanted = listed[cells[j], i]
            column[j, i] = slot_of(t, wanted)
            if column[j, i] < 0 and _find(label, extra, wanted) < 0:
                place = extra
                while place > 0 and label[place - 1] > wanted:
                    label[place] = label[place - 1]
                    place -= 1
                label[place] = wanted
                extra += 1
    for j in range(len(cells)):
        for i in range(column.shape[1]):
            if column[j, i] < 0:
                column[j, i] = m + _find(label, extra, listed[cells[j], i])
    return extra


@part
def _distances(t: Any, places: Any, near: Any) -> None:
    """(6 J, N) how far the cells are from places (6 J, d), squared, by differences."""
    cells, zero = at.single_rows(t[at.PLACE]), np.float32(0.0)
    for j in range(0, len(places), SIX):
        x0, x1, x2 = places[j], places[j + 1], places[j + 2]
        x3, x4, x5 = places[j + 3], places[j + 4], places[j + 5]
        for i in range(near.shape[1]):
            a, b, c, e, f, g = zero, zero, zero, zero, zero, zero
            for k in range(places.shape[1]):
                y = cells[i, k]
                a += (y - x0[k]) * (y - x0[k])
                b += (y - x1[k]) * (y - x1[k])
                c += (y - x2[k]) * (y - x2[k])
                e += (y - x3[k]) * (y - x3[k])
                f += (y - x4[k]) * (y - x4[k])
                g += (y - x5[k]) * (y - x5[k])
            near[j, i], near[j + 1, i], near[j + 2, i] = a, b, c
            near[j + 3, i], near[j + 4, i], near[j + 5, i] = e, f, g


@part
def _bring(t: Any, cell: int, off: Any, across: Any, place: Any) -> None:
    """A cell's key relative to the origin, the same times A, and where it is placed."""
    key, origin = at.single_rows(t[at.KEY])[cell], at.double(t[at.ORIGIN])
    kept, crossed = at.double_rows(t[at.ACROSS])[cell], at.whole(t[at.CROSSED])
    for k in range(len(off)):
        off[k] = key[k] - origin[k]
    if not crossed[cell]:
        place_key(t, off, across)
        cross(t, across, kept)
        crossed[cell] = 1
    placed = at.single_rows(t[at.PLACE])[cell]
    for k in range(len(off)):
        across[k] = kept[k]
    for k in range(len(off)):
        place[k] = placed[k]


@part
def _vote(strength: float, score: Any, own: Any, slot: int, believed: float, p: Any) -> None:
    """Move the votes ``own`` (C,) of a cell to what puts it right; ``p`` is used up."""
    for _ in range(3):
        for y in range(len(p)):
            p[y] = score[y]
        softmax64(p)
        p[slot] -= 1.0
        for y in range(len(own)):
            change = (-believed * p[y] - own[y]) / (1.0 + strength / 2.0)
            own[y] += change
            score[y] += strength * change


@part
def _keep(own: Any, slot: int, kept: Any, votes: Any) -> None:
    """The largest of some votes (C,), that for the cell's own label first; the rest is 0."""
    said, used = np.float32(_SAID), 1
    for k in range(len(kept)):
        kept[k], votes[k] = slot, 0.0
    votes[0] = own[slot]
    for y in range(len(own) - 1):
        size = abs(own[y])
        if np.float32(size) <= said or y == slot:
            continue
        if used == len(kept):
            if used == 1 or size <= abs(votes[used - 1]):
                continue
            used -= 1
        place = used
        while place > 1 and abs(votes[place - 1]) < size:
            votes[place], kept[place] = votes[place - 1], kept[place - 1]
            place -= 1
        votes[place], kept[place] = own[y], y
        used += 1


@part
def _doubt(t: Any, doubted: float) -> None:
    """Average the share of wrong labels, given that among some cells."""
    numbers = at.double(t[at.NUMBERS])
    noise, seen = numbers[5], max(numbers[0] + numbers[1], 1.0)
    pull = _PULL * (at.double(t[at.OPTIONS])[at.NOISE] - noise)
    change = min(1.0, t[at.CELLS, 0] / seen) * doubted - noise + pull
    numbers[5] = min(max(noise + change / _MIX, _LEAST), _LARGEST)


@part
def replay(t: Any, written: int) -> None:
    """Replay the cells whose turn it is, and the one just written unless it is -1."""
    options, slots = at.double(t[at.OPTIONS]), at.whole(t[at.SLOT])
    about, vote = at.whole_rows(t[at.ABOUT]), at.single_rows(t[at.VOTE])
    listed, value = at.whole_rows(t[at.LISTED]), at.single_rows(t[at.VALUE])
    all_ = np.empty(np.int64(options[at.REVISITS]) + 1, np.int64)
    J = _turn(t, written, all_)
    cells = all_[:J]
    if J == 0:
        return
    d, m, noise = t[at.DIM, 0], t[at.SLOTS, 0], at.double(t[at.NUMBERS])[5]
    labels, most = t[at.KNOWN, 0] + t[at.NEW, 0], (J + SIX - 1) // SIX * SIX
    keys, places = np.zeros((2 * most, d)), np.zeros((most, d), np.float32)
    off, across = keys[:most], keys[most:]
    for j in range(J):
        _bring(t, cells[j], off[j], across[j], places[j])
    near = np.empty((most, t[at.CELLS, 0]), np.float32)
    _distances(t, places, near)
    column = np.empty((J, listed.shape[1]), np.int64)
    other = np.empty(J * listed.shape[1], np.int64)
    n = m + 1 + _candidates(t, cells, column, other)
    told = np.zeros((3 * most, m))
    along, linear, error = told[:most], told[most : 2 * most], told[2 * most :]
    products(at.double_rows(t[at.CENTRED]), at.double(t[at.COUNT]), across, along)
    products(at.double_rows(t[at.ROWS]), np.ones(m), off, linear)
    theta = at.double(t[at.THETA]).copy()
    theta[_VOTES] = 1.0  # votes are set as if they counted in full
    F, wide, brief = np.empty((len(theta), n)), np.empty((4, n)), np.empty((6, n), np.float32)
    offset, score, own, alone = wide[0], wide[1], wide[2], wide[3]
    votes, base, means = brief[0, :m], brief[1], brief[2, :m]
    offsets(t, offset)
    factor, doubted, strength = np.float32(tame(t, 0.0)), 0.0, options[at.STRENGTH]
    kept, size = np.empty((J, about.shape[1]), np.int64), np.empty((J, about.shape[1]))
    for j in range(J):
        cell = cells[j]
        slot, rest, answer = slots[cell], factor * at.single(t[at.REST])[cell], listed[cell, 0]
        for y in range(n):
            base[y] = rest
        for i in range(column.shape[1]):
            base[column[j, i]] = factor * value[cell, i]
        become_near(t, near[j])
        listen(t, near[j], votes)
        log_sum, length = at.single(t[at.TOTAL])[cell], inner(across[j], off[j])
        heard = (along[j], length, slot, votes, linear[j], means, brief[3:], F)
        gather(t, base, column[j, 0], answer, log_sum, *heard)
        weigh(theta, F, offset, score)
        for y in range(n):
            own[y] = 0.0
        for k in range(about.shape[1]):
            own[about[cell, k]] += vote[cell, k]
        for y in range(n):
            alone[y] = score[y] - strength * own[y]
        softmax64(alone)  # without what the cell itself says
        right = (1.0 - noise) * alone[slot]
        believed = right / (right + noise / labels)
        doubted += (1.0 - believed) / J
        believed = max(believed, options[at.BELIEVED])
        for y in range(m):
            error[j, y] = -believed * alone[y]
        error[j, slot] += believed
        _vote(strength, score, own, slot, believed, alone)
        _keep(own, slot, kept[j], size[j])
        for k in range(d):
            across[j, k] *= options[at.RATE] / max(length, 1e-9)
    _doubt(t, doubted)
    add_products(at.double_rows(t[at.ROWS]), options[at.KEPT], error, across)
    for j in range(J):
        for k in range(about.shape[1]):
            y = kept[j, k]
            about[cells[j], k] = y if y < m else open_slot(t, other[y - m])
            vote[cells[j], k] = size[j, k]
