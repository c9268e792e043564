"""The kernel that learns a label: what ``User.observe`` says, in one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import copy, kernel
from labelmem.engines.numba.bytes import vector_at
from labelmem.engines.numba.logit.arithmetic import inner, softmax64
from labelmem.engines.numba.logit.belief import (
    CANDIDATES,
    CHOSEN,
    LABELS,
    PEAK,
    REST,
    PLACED,
    SLOTS_THEN,
    SURE,
    TOTAL,
    belief_at,
    features_of,
)
from labelmem.engines.numba.logit.following import (
    chain,
    cross,
    freshen,
    measure_cell,
    measure_slot,
    open_slot,
    put,
    subtract,
)
from labelmem.engines.numba.logit.layout import (
    ANSWERS,
    CELLS,
    DIM,
    FEATURES,
    KNOWN,
    LISTED,
    PAIRS,
    constants_at,
    memory_at,
)
from labelmem.engines.numba.logit.replay import replay
from labelmem.engines.numba.logit.weights import learn_weights
from labelmem.engines.numba.places import add_place, place_of

__all__ = ["learn"]

_TO_NEW, _TO_KNOWN = 0, 1


@kernel
def _column(b: Any, n: int, label: int) -> int:
    """Where a label stands among the candidates; among the rest if it is none."""
    for y in range(n - 1):
        if b.label[y] == label:
            return y
    return n - 1


@kernel
def _be_careful(u: Any, c: Any, b: Any, n: int, label: int, true: int, believed: float) -> None:
    """Let caution grow if the model's choice was right and almost lost; else a little less."""
    chosen, rival, known = np.int64(b.head[CHOSEN]), -1, u.counts[KNOWN]
    for y in range(n):
        if y != chosen and (rival < 0 or b.scores[y] > b.scores[rival]):
            rival = y
    kind = _TO_NEW if rival < n - 1 and b.label[rival] >= known else _TO_KNOWN
    gap = b.scores[rival] - b.scores[chosen] - u.nats[kind]
    lost = 1.0 / (1.0 + math.exp(-min(max(gap / c.soft, -30.0), 30.0)))
    change = np.zeros(2)
    change[kind] = -c.wrong * (u.numbers[5] / b.head[LABELS]) * lost
    if label < known:
        change[_TO_NEW] -= c.harm
        change[_TO_KNOWN] -= c.may_swap
        if true == chosen:
            if gap < c.clearly:
                change[kind] += lost * believed
        elif true == rival:
            change[kind] -= lost
            change[_TO_NEW] -= c.relief * lost
    for i in range(2):
        u.nats[i] = min(max(u.nats[i] + change[i], 0.0), c.most_caution)


@kernel
def _calibrate(u: Any, c: Any, b: Any, met: Any, slot: int) -> None:
    """A Newton step of log kappa."""
    p, mean, square = np.empty(len(b.means)), 0.0, 0.0
    for y in range(len(p)):
        p[y] = b.means[y] if met[y] > 0 else -math.inf
    softmax64(p, p)
    mean = inner(p, b.means)
    for y in range(len(p)):
        square += p[y] * b.means[y] * b.means[y]
    held = c.kappa_kept * u.tally[4] + (square - mean * mean) + 1e-3
    step = min(max((b.means[slot] - mean) / held, -c.steepest), c.steepest)
    u.tally[4] = held
    u.tally[3] *= math.exp(step)


@kernel
def _remember_pair(u: Any, c: Any, label: int, slot: int) -> None:
    """One more time that the label of a slot was true when the model said this."""
    t = u.counts
    answer = place_of(label, u.answer, t[ANSWERS], u.answers)
    if answer < 0:
        answer = t[ANSWERS]
        t[ANSWERS] += 1
        u.answer[answer], u.first[answer] = label, -1
        add_place(answer, u.answer, u.answers)
    whole, found, pair = 0.0, -1, u.first[answer]
    while pair >= 0:
        whole += u.often[pair]
        if u.pair_slot[pair] == slot:
            found = pair
        pair = u.next[pair]
    left = min(1.0, (c.row - 1.0) / max(whole, 1e-9))
    pair = u.first[answer]
    while pair >= 0:
        u.often[pair] *= left
        pair = u.next[pair]
    if found < 0:
        found = t[PAIRS]
        t[PAIRS] += 1
        u.pair_of[found], u.pair_slot[found], u.often[found] = answer, slot, 0.0
        chain(u, answer, found)
    u.often[found] += 1.0


@kernel
def _add(u: Any, x: Any, slot: int) -> None:
    """One more example of a label."""
    count, d, sums, tally = u.count[slot], len(x), u.sums[slot], u.tally
    off = np.empty(d)
    if count > 0:
        for k in range(d):
            off[k] = x[k] - sums[k] / count
        for i in range(d):
            row, share = u.scatter[i], count / (count + 1.0) * off[i]
            for k in range(i, d):
                row[k] += share * off[k]
        tally[1] += 1.0
    u.count[slot] += 1.0
    tally[0] += 1.0
    grown = 0.0
    for k in range(d):
        sums[k] += x[k]
    for k in range(d):
        off[k] = x[k] - u.mean[k]
    for k in range(d):
        u.mean[k] += off[k] / tally[0]
    for k in range(d):
        grown += off[k] * (x[k] - u.mean[k])
    tally[2] += grown


@kernel
def _take_in(u: Any, c: Any, b: Any, x: Any, label: int) -> None:
    """Caution, weights, and all that the label tells of the stream."""
    n, noise, m = np.int64(b.head[CANDIDATES]), u.numbers[5], len(b.means)
    F, offset, true = features_of(b, n), b.offset[:n], _column(b, n, label)
    met, believed, p = label < u.counts[KNOWN] or true < n - 1, 1.0, np.empty(n)
    softmax64(b.scores[:n], p)
    if met:
        right = (1.0 - noise) * p[true]
        believed = right / (right + noise / b.head[LABELS])
    _be_careful(u, c, b, n, label, true, believed)
    if met:
        learn_weights(u, c, F, offset, true, noise, b.head[LABELS])
    whole, numbers = b.head[TOTAL], u.numbers
    numbers[0 if label < u.counts[KNOWN] else 1] += 1.0
    numbers[2] += whole
    numbers[3] += np.float32(whole * whole)
    numbers[4] += np.float32(b.head[PEAK])
    slot = open_slot(u, c, label)
    if slot < m and F[5, slot] > 0:  # the log of its count: it had examples
        _calibrate(u, c, b, F[5], slot)
    _remember_pair(u, c, np.int64(b.listed[0]), slot)
    _add(u, x, slot)
    b.head[SURE] = 1.0 if met and p[true] >= c.gate else 0.0


@kernel
def _write(u: Any, c: Any, b: Any, x: Any, slot: int) -> int:
    """Remember an example, without a vote; give its number."""
    t = u.counts
    number = t[CELLS]
    if number < c.capacity:
        t[CELLS] += 1
    else:
        number = 0
        for i in range(t[CELLS]):
            if abs(u.vote[i, 0]) < abs(u.vote[number, 0]):
                number = i
    copy(x, u.key[number])
    copy(b.placed, u.place[number])
    copy(b.across, u.across[number])
    copy(b.listed, u.listed[number])
    copy(b.value, u.value[number])
    for k in range(u.vote.shape[1]):
        u.about[number, k], u.vote[number, k] = slot, 0.0
    u.slot[number], u.crossed[number] = slot, 1
    u.rest[number], u.total[number] = b.head[REST], b.head[TOTAL]
    measure_cell(u, number)
    return np.int64(number)


@kernel
def learn(
    table: Any, room: Any, x_at: int, label: int, slots: int, cells: int, first: bool, then: bool
) -> None:
    """Learn the label of the input that a prediction left in ``room``.

    Between the ``first`` part and what comes ``then`` the covariance is inverted, now and then.
    ``slots`` and ``cells`` are how many there were. Where the key lies may have changed since: if
    so, ``PLACED`` of the belief is 0.
    """
    u = memory_at(table)
    c = constants_at(u.constants)
    freshen(u, c)
    d = u.counts[DIM]
    b = belief_at(room, u.counts[FEATURES], u.counts[LISTED], d, slots, cells)
    x = vector_at(x_at, d)
    if first:
        _take_in(u, c, b, x, label)
    if not then:
        return
    slot, off = open_slot(u, c, label), np.empty(d)
    measure_slot(u, c, slot)
    if first:  # else the squares were made with the inverse
        put(u, u.centred[slot], off)
        u.square[slot] = inner(off, off)
    written = -1
    if not b.head[SURE]:
        if not b.head[PLACED]:
            subtract(x, u.origin, off)
            put(u, off, b.placed)
            cross(u, b.placed, b.across)
        written = _write(u, c, b, x, slot)
    replay(u, c, written)
