"""The kernel that learns a label: what ``User.observe`` says, in one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import copy, kernel, part
from labelmem.engines.numba.bytes import vector_at
from labelmem.engines.numba.logit import belief as of
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.logit.arithmetic import BLOCK, inner, softmax64
from labelmem.engines.numba.logit.belief import features_of, piece
from labelmem.engines.numba.logit.following import (
    chain,
    cross,
    freshen,
    measure_cell,
    measure_slot,
    open_slot,
    place_key,
)
from labelmem.engines.numba.logit.replay import replay
from labelmem.engines.numba.logit.weights import learn_weights
from labelmem.engines.numba.places import add_place, place_of
from labelmem.logit_memory.caution import (
    _CLEARLY,
    _MAY_SWAP,
    _MOST,
    _RELIEF,
    _SOFT,
    _TO_KNOWN,
    _TO_NEW,
    _WRONG,
)
from labelmem.logit_memory.statistics import _KEPT, _STEEPEST

__all__ = ["learn"]


@part
def _be_careful(
    t: Any, room: Any, names: Any, score: Any, label: int, true: Any, believed: float
) -> None:
    """Let caution grow if the model's choice was right and almost lost; else a little less."""
    nats, known, n = at.double(t[at.NATS]), t[at.KNOWN, 0], len(score)
    chosen, rival = np.int64(room[of.CHOSEN]), -1
    for y in range(n):
        if y != chosen and (rival < 0 or score[y] > score[rival]):
            rival = y
    kind = _TO_NEW if names[rival] >= known else _TO_KNOWN
    gap = score[rival] - score[chosen] - nats[kind]
    lost = 1.0 / (1.0 + math.exp(-min(max(gap / _SOFT, -30.0), 30.0)))
    nats[kind] -= _WRONG * (at.double(t[at.NUMBERS])[5] / room[of.LABELS]) * lost
    if label < known:
        nats[_TO_NEW] -= at.double(t[at.OPTIONS])[at.HARM]
        nats[_TO_KNOWN] -= _MAY_SWAP
        if true == chosen:
            nats[kind] += lost * believed if gap < _CLEARLY else 0.0
        elif true == rival:
            nats[kind] -= lost
            nats[_TO_NEW] -= _RELIEF * lost
    for i in range(2):
        nats[i] = min(max(nats[i], 0.0), _MOST)


@part
def _calibrate(t: Any, s: Any, counts: Any, slot: int) -> None:
    """A Newton step of log kappa, given the scores of the means; they had examples or none."""
    p, tally, square = np.empty(len(s)), at.double(t[at.TALLY]), 0.0
    for y in range(len(p)):
        p[y] = s[y] if counts[y] > 0 else -math.inf
    softmax64(p)
    mean = inner(p, s)
    for y in range(len(p)):
        square += p[y] * s[y] * s[y]
    held = _KEPT * tally[4] + (square - mean * mean) + 1e-3
    tally[4] = held
    tally[3] *= math.exp(min(max((s[slot] - mean) / held, -_STEEPEST), _STEEPEST))


@part
def _remember_pair(t: Any, label: Any, slot: int) -> None:
    """One more time that the label of a slot was true when the model said this."""
    answer, table = at.whole(t[at.ANSWER]), at.whole(t[at.ANSWER_TABLE])
    first, slots, often = at.whole(t[at.FIRST]), at.whole(t[at.PAIR_SLOT]), at.double(t[at.OFTEN])
    a = place_of(label, answer, t[at.ANSWERS, 0], table)
    if a < 0:
        a = t[at.ANSWERS, 0]
        t[at.ANSWERS, 0] += 1
        answer[a], first[a] = label, -1
        add_place(a, answer, table)
    following, all_, found, pair = at.whole(t[at.NEXT]), 0.0, -1, first[a]
    while pair >= 0:
        all_ += often[pair]
        found = pair if slots[pair] == slot else found
        pair = following[pair]
    left = min(1.0, (at.double(t[at.OPTIONS])[at.ROW] - 1.0) / max(all_, 1e-9))
    pair = first[a]
    while pair >= 0:
        often[pair] *= left
        pair = following[pair]
    if found < 0:
        found = t[at.PAIRS, 0]
        t[at.PAIRS, 0] += 1
        at.whole(t[at.PAIR_OF])[found], slots[found], often[found] = a, slot, 0.0
        chain(t, a, found)
    often[found] += 1.0


@part
def _add(t: Any, x: Any, slot: int, off: Any) -> None:
    """One more example of a label."""
    counts, tally, mean = at.double(t[at.COUNT]), at.double(t[at.TALLY]), at.double(t[at.MEAN])
    sums, scatter = at.double_rows(t[at.SUMS])[slot], at.double_rows(t[at.SCATTER])
    count, d = counts[slot], np.uint64(len(x))
    if count > 0:
        for k in range(d):
            off[k] = x[k] - sums[k] / count
        for i in range(d):
            share = count / (count + 1.0) * off[i]
            for k in range(i - i % BLOCK, d):
                scatter[i, k] += share * off[k]
        tally[1] += 1.0
    counts[slot] += 1.0
    tally[0] += 1.0
    seen = tally[0]
    for k in range(d):
        sums[k] += x[k]
    for k in range(d):
        off[k] = x[k] - mean[k]
    for k in range(d):
        mean[k] += off[k] / seen
    grown = 0.0
    for k in range(d):
        grown += off[k] * (x[k] - mean[k])
    tally[2] += grown


@part
def _take_in(t: Any, room: Any, x: Any, label: int, off: Any) -> Any:
    """Caution, weights, and all that the label tells of the stream; the label's slot."""
    numbers, known = at.double(t[at.NUMBERS]), t[at.KNOWN, 0]
    n: Any = np.int64(room[of.CANDIDATES])
    names, offset, score = piece(room, of.LABEL), piece(room, of.OFFSET), piece(room, of.SCORES)
    means, p = piece(room, of.MEANS), np.empty(n)
    F = features_of(room, len(at.double(t[at.THETA])))
    true, noise, labels, believed = n - 1, numbers[5], room[of.LABELS], 1.0
    for y in range(n - 1):
        true = y if names[y] == label else true
    met = label < known or true < n - 1
    copy(score[:n], p)
    softmax64(p)
    if met:
        right = (1.0 - noise) * p[true]
        believed = right / (right + noise / labels)
    room[of.SURE] = 1.0 if met and p[true] >= at.double(t[at.OPTIONS])[at.GATE] else 0.0
    _be_careful(t, room, names, score[:n], label, true, believed)
    if met:
        learn_weights(t, F, offset[:n], true, noise, labels)
    log_sum = room[of.LOG_SUM]
    numbers[0 if label < known else 1] += 1.0
    numbers[2] += log_sum
    numbers[3] += np.float32(log_sum * log_sum)
    numbers[4] += np.float32(room[of.PEAK])
    slot = open_slot(t, label)
    counts = F[5]  # 0 for the slots without examples
    if slot < len(means) and counts[slot] > 0:
        _calibrate(t, means, counts, slot)
    _remember_pair(t, np.int64(piece(room, of.LISTED)[0]), slot)
    _add(t, x, slot, off)
    return slot


@part
def _write(t: Any, room: Any, x: Any, slot: int) -> Any:
    """Remember an example, without a vote; give its number."""
    n, about, vote = t[at.CELLS, 0], at.whole_rows(t[at.ABOUT]), at.single_rows(t[at.VOTE])
    if n < at.double(t[at.OPTIONS])[at.CAPACITY]:
        t[at.CELLS, 0] += 1
    else:
        all_, n = n, 0
        for i in range(all_):
            n = i if abs(vote[i, 0]) < abs(vote[n, 0]) else n
    copy(x, at.single_rows(t[at.KEY])[n])
    copy(piece(room, of.PLACE), at.single_rows(t[at.PLACE])[n])
    copy(piece(room, of.ACROSS), at.double_rows(t[at.ACROSS])[n])
    copy(piece(room, of.LISTED), at.whole_rows(t[at.LISTED])[n])
    copy(piece(room, of.VALUE), at.single_rows(t[at.VALUE])[n])
    for k in range(vote.shape[1]):
        about[n, k], vote[n, k] = slot, 0.0
    at.whole(t[at.SLOT])[n], at.whole(t[at.CROSSED])[n] = slot, 1
    at.single(t[at.REST])[n], at.single(t[at.TOTAL])[n] = room[of.REST], room[of.LOG_SUM]
    measure_cell(t, n)
    return n


@part
def _square(t: Any, slot: int, own: float, across: Any) -> None:
    """Let the square of a mean follow, now that one more key counts: u' A u from what it was."""
    n, squares = at.double(t[at.COUNT])[slot], at.double(t[at.SQUARE])
    old = n - 1.0
    along = inner(across, at.double_rows(t[at.CENTRED])[slot])
    squares[slot] = (old * old * squares[slot] + 2.0 * old * along + own) / (n * n)
    measure_slot(t, slot)


@kernel
def learn(t: Any, room: Any, x_at: int, label: int, first: bool, then: bool) -> None:
    """Learn the label of the input that a prediction left in ``room``.

    Between the ``first`` part and what comes ``then`` the covariance is inverted, now and then. In
    ``room`` stands whether the key is still placed where it was.
    """
    freshen(t)
    d, place, across = t[at.DIM, 0], piece(room, of.PLACE), piece(room, of.ACROSS)
    x, off, origin = vector_at(x_at, d), np.empty(d), at.double(t[at.ORIGIN])
    slot = _take_in(t, room, x, label, off) if first else open_slot(t, label)
    if not then:
        return
    for k in range(d):
        off[k] = x[k] - origin[k]
    if not room[of.PLACED]:
        place_key(t, off, place)
        cross(t, place, across)
    if first:  # else it was done with the inverse
        _square(t, slot, inner(off, across), across)
    written = -1
    if not room[of.SURE]:
        written = _write(t, room, x, slot)
    replay(t, written)
