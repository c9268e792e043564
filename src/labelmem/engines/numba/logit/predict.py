"""The kernel that predicts: what ``User.believe`` says, in one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import copy, exp, kernel, largest, part, total
from labelmem.engines.numba.bytes import vector_at
from labelmem.engines.numba.logit import belief as of
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.logit.arithmetic import inner, softmax64
from labelmem.engines.numba.logit.belief import features_of, lay_out, piece
from labelmem.engines.numba.logit.evidence import become_near, gather, listen, offsets, tame, weigh
from labelmem.engines.numba.logit.following import cross, freshen, place_key, slot_of

__all__ = ["predict"]

_BLOCK = 64
_LOWEST, _NOBODY = np.float32(-math.inf), np.int64(-1)


@part
def _alike(logits: Any, listed: Any, value: Any) -> bool:
    """List the largest logits, largest first; whether some are alike, so that others might be."""
    k, used = len(value), 0
    for first in range(0, len(logits), _BLOCK):
        block = logits[first : first + _BLOCK]
        if used == k and largest(block) <= value[k - 1]:
            continue
        for i in range(len(block)):
            if used == k and block[i] <= value[k - 1]:
                continue
            used = min(used + 1, k)
            place = used - 1
            while place > 0 and value[place - 1] < block[i]:
                value[place], listed[place] = value[place - 1], listed[place - 1]
                place -= 1
            value[place], listed[place] = block[i], first + i
    least, found = np.float32(value[k - 1]), 0
    for i in range(len(logits)):
        found += logits[i] >= least
    for i in range(1, k):
        found += value[i - 1] == value[i]
    return found != k


@part
def _look(room: Any, listed: Any, logits: Any, r: Any) -> None:
    """What the model says: its softmax, the log-sum, and what each logit not listed is taken as."""
    top, n, k = largest(logits), len(logits), len(listed)
    for i in range(n):
        r[i] = exp(logits[i] - top)
    for i in range(n, len(r)):
        r[i] = 0
    whole = total(r)
    for i in range(k):
        r[np.int64(listed[i])] = 0
    small = total(r)
    for i in range(k):
        r[np.int64(listed[i])] = exp(logits[np.int64(listed[i])] - top)
    inverse = np.float32(1.0) / whole
    for i in range(n):
        r[i] *= inverse
    found = top + np.float32(math.log(whole))
    room[of.LOG_SUM] = room[of.REST] = found
    room[of.PEAK] = top - total(logits) / np.float32(n)
    if n > k:
        share = max(small * inverse, np.float32(1e-9))
        room[of.REST] = found + np.float32(math.log(share / np.float32(n - k)))


@part
def _candidates(t: Any, room: Any, listed: Any, label: Any) -> None:
    """The labels that are asked about, those without a slot sorted behind the slots."""
    m, slots = t[at.SLOTS, 0], at.whole(t[at.LABEL])
    n = m
    for y in range(m):
        label[y] = slots[y]
    for i in range(len(listed)):
        if slot_of(t, np.int64(listed[i])) < 0:
            place = n
            while place > m and label[place - 1] > listed[i]:
                label[place] = label[place - 1]
                place -= 1
            label[place] = listed[i]
            n += 1
    label[n] = -1.0
    for y in range(n):
        if label[y] == listed[0]:
            room[of.CHOSEN] = y
    room[of.CANDIDATES], room[of.LABELS] = n + 1, t[at.KNOWN, 0] + t[at.NEW, 0]


@part
def _hear(t: Any, x: Any, room: Any, near: Any, votes: Any, off: Any, found: Any) -> None:
    """Ask the cells, the means and the corrections."""
    d, m, place, across = len(x), len(votes), piece(room, of.PLACE), piece(room, of.ACROSS)
    origin = at.double(t[at.ORIGIN])
    for k in range(d):
        off[k] = x[k] - origin[k]
    place_key(t, off, place)
    cross(t, place, across)
    cells, here = at.single_rows(t[at.PLACE]), np.empty(d, np.float32)
    copy(place, here)
    for i in range(len(near)):
        cell, far = cells[i], np.float32(0.0)
        for k in range(d):
            far += (cell[k] - here[k]) * (cell[k] - here[k])
        near[i] = far
    become_near(t, near)
    copy(near, piece(room, of.NEAR))
    listen(t, near, votes)
    count, rows = at.double(t[at.COUNT]), at.double_rows(t[at.ROWS])
    centred = at.double_rows(t[at.CENTRED])
    for y in range(m):
        found[0, y] = inner(centred[y], across) if count[y] > 0 else 0.0
    for y in range(m):
        found[1, y] = inner(rows[y], off)


@part
def _believe(t: Any, room: Any, label: Any, score: Any, logits: Any, factor: float, P: Any) -> None:
    """P (W,): with caution, and with the share of wrong labels; ``score`` (C,) is used up."""
    known, noise, nats = len(logits), at.double(t[at.NUMBERS])[5], at.double(t[at.NATS])
    scale, last = at.double(t[at.THETA])[0] * factor, len(score) - 1
    for y in range(last):
        if y != room[of.CHOSEN]:
            score[y] -= nats[0] if label[y] >= known else nats[1]
    for i in range(known):
        P[i] = scale * logits[i]
    for i in range(known, len(P)):
        P[i] = _LOWEST
    for y in range(last):
        P[np.int64(label[y])] = score[y]
    top = np.float64(largest(P))
    for i in range(known):
        P[i] = exp(np.float32(scale * logits[i] - top))
    for i in range(known, len(P)):
        P[i] = 0
    for y in range(last):
        P[np.int64(label[y])] = exp(np.float32(score[y] - top))
    right = np.float32((1.0 - noise) / total(P))
    wrong = np.float32(noise / room[of.LABELS])
    for i in range(known):
        P[i] = right * P[i] + wrong
    for y in range(last):
        if label[y] >= known:
            new = np.int64(label[y])
            P[new] = right * P[new] + wrong


@part
def _without_model(theta: Any, F: Any, label: Any, score: Any, s: Any) -> None:
    """(W,) what would be believed without the model, over the labels in memory."""
    for i in range(len(s)):
        s[i] = 0
    if len(score) == 0:
        return
    for y in range(len(score)):
        score[y] = 0.0
    for k in range(2, len(theta)):
        for y in range(len(score)):
            score[y] += theta[k] * F[k, y]
    softmax64(score)
    for y in range(len(score)):
        s[np.int64(label[y])] = score[y]


@kernel
def predict(
    t: Any, room: Any, x_at: int, logits_at: int, out_at: int, width: int, listed: bool
) -> bool:
    """Predict over ``width`` labels for a key and the model's logits; False if there are ties.

    P, what the model believes and what the memory would go to ``out`` (3, W), what is needed later
    to ``room``. Where logits are alike, whoever asks lists the largest in ``room`` and asks again.
    """
    freshen(t)
    d, m, cells, theta = t[at.DIM, 0], t[at.SLOTS, 0], t[at.CELLS, 0], at.double(t[at.THETA])
    x, logits = vector_at(x_at, d), vector_at(logits_at, t[at.KNOWN, 0])
    lay_out(room, len(theta), at.whole_rows(t[at.LISTED]).shape[1], d, cells, m)
    names = piece(room, of.LISTED)
    if not listed and _alike(logits, names, piece(room, of.VALUE)):
        return False
    out = vector_at(out_at, 3 * width).reshape((3, width))
    copy(theta, piece(room, of.THETA))
    _look(room, names, logits, out[1])
    label = piece(room, of.LABEL)
    _candidates(t, room, names, label)
    n, known = np.int64(room[of.CANDIDATES]), len(logits)
    found, off = np.empty((3, n)), np.empty(d)
    brief, near = np.empty((6, n), np.float32), np.empty(cells, np.float32)
    votes, base, means = brief[0, :m], brief[1], brief[2, :m]
    _hear(t, x, room, near, votes, off, found)
    factor = tame(t, room[of.PEAK])
    small, rest = np.float32(factor), np.float32(room[of.REST])
    for y in range(n - 1):
        base[y] = small * logits[min(np.int64(label[y]), known - 1)]
    base[n - 1] = small * rest
    F, chosen, answer = features_of(room, len(theta)), np.int64(room[of.CHOSEN]), np.int64(names[0])
    own, log_sum, none = inner(off, piece(room, of.ACROSS)), np.float32(room[of.LOG_SUM]), _NOBODY
    heard = (found[0], own, none, votes, found[1], means, brief[3:], F)
    gather(t, base, chosen, answer, log_sum, *heard)
    copy(means, piece(room, of.MEANS))
    offset, score = piece(room, of.OFFSET)[:n], piece(room, of.SCORES)[:n]
    offsets(t, offset)
    weigh(theta, F, offset, score)
    copy(score, found[2])
    _believe(t, room, label, found[2], logits, factor, out[0])
    _without_model(theta, F, label, found[0, :m], out[2])
    return True
