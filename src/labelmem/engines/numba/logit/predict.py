"""The kernel that predicts: what ``User.believe`` says, in one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import copy, exp, kernel, largest, total
from labelmem.engines.numba.bytes import vector_at
from labelmem.engines.numba.logit.arithmetic import inner, products, softmax64
from labelmem.engines.numba.logit.belief import (
    CANDIDATES,
    CHOSEN,
    LABELS,
    PEAK,
    REST,
    SLOTS_THEN,
    TOTAL,
    belief_at,
    features_of,
)
from labelmem.engines.numba.logit.evidence import gather, listen, nearness, offsets, tame, weigh
from labelmem.engines.numba.logit.following import cross, freshen, put, subtract
from labelmem.engines.numba.logit.layout import (
    CELLS,
    DIM,
    FEATURES,
    KNOWN,
    LISTED,
    NEW,
    SLOTS,
    constants_at,
    memory_at,
)
from labelmem.engines.numba.places import place_of

__all__ = ["predict"]

_BLOCK = 64
_LOWEST = np.float32(-math.inf)


@kernel
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
            at = used - 1
            while at > 0 and value[at - 1] < block[i]:
                value[at], listed[at] = value[at - 1], listed[at - 1]
                at -= 1
            value[at], listed[at] = block[i], first + i
    least, found = np.float32(value[k - 1]), 0
    for i in range(len(logits)):
        found += logits[i] >= least
    for i in range(1, k):
        found += value[i - 1] == value[i]
    return found != k


@kernel
def _look(b: Any, logits: Any, r: Any) -> None:
    """What the model says: its softmax, the log-sum, and what each logit not listed is taken as."""
    top, n, k = largest(logits), len(logits), len(b.listed)
    for i in range(n):
        r[i] = exp(logits[i] - top)
    for i in range(n, len(r)):
        r[i] = 0
    whole = total(r)
    for i in range(k):
        r[np.int64(b.listed[i])] = 0
    small = total(r)
    for i in range(k):
        at = np.int64(b.listed[i])
        r[at] = exp(logits[at] - top)
    inverse = np.float32(1.0) / whole
    for i in range(n):
        r[i] *= inverse
    found = top + np.float32(math.log(whole))
    b.head[TOTAL] = b.head[REST] = found
    b.head[PEAK] = top - total(logits) / np.float32(n)
    if n > k:
        share = max(small * inverse, np.float32(1e-9))
        b.head[REST] = found + np.float32(math.log(share / np.float32(n - k)))


@kernel
def _candidates(u: Any, b: Any) -> int:
    """The labels that are asked about, sorted behind the slots; how many, and that of the choice."""
    m = u.counts[SLOTS]
    n = m
    for y in range(m):
        b.label[y] = u.label[y]
    for i in range(len(b.listed)):
        label = b.listed[i]
        if place_of(np.int64(label), u.label, m, u.table) < 0:
            at = n
            while at > m and b.label[at - 1] > label:
                b.label[at] = b.label[at - 1]
                at -= 1
            b.label[at] = label
            n += 1
    b.label[n] = -1
    chosen = place_of(np.int64(b.listed[0]), u.label, m, u.table)
    for y in range(m, n):
        if b.label[y] == b.listed[0]:
            chosen = y
    b.head[SLOTS_THEN], b.head[CANDIDATES], b.head[CHOSEN] = m, n + 1, chosen
    return n + 1


@kernel
def _base(u: Any, b: Any, logits: Any, factor: np.float32, out: Any) -> None:
    """(C,) logits of the candidates, the rest's last; of new labels they mean nothing."""
    last = len(out) - 1
    for y in range(last):
        out[y] = factor * logits[min(np.int64(b.label[y]), len(logits) - 1)]
    out[last] = factor * np.float32(b.head[REST])


@kernel
def _believe(u: Any, b: Any, logits: Any, factor: float, n: int, P: Any) -> None:
    """P (W,): with caution, and with the share of wrong labels."""
    known, noise, chosen = len(logits), u.numbers[5], b.head[CHOSEN]
    scale = b.theta[0] * factor
    for i in range(known):
        P[i] = scale * logits[i]
    for i in range(known, len(P)):
        P[i] = _LOWEST
    for y in range(n - 1):
        new = y < b.head[SLOTS_THEN] and u.is_new[y] > 0
        careful = 0.0 if y == chosen else u.nats[0 if new else 1]
        P[np.int64(b.label[y])] = b.scores[y] - careful
    top = np.float64(largest(P))
    for i in range(known):
        P[i] = exp(np.float32(scale * logits[i] - top))
    for i in range(known, len(P)):
        P[i] = 0
    for y in range(n - 1):
        new = y < b.head[SLOTS_THEN] and u.is_new[y] > 0
        careful = 0.0 if y == chosen else u.nats[0 if new else 1]
        P[np.int64(b.label[y])] = exp(np.float32(b.scores[y] - careful - top))
    right = np.float32((1.0 - noise) / total(P))
    there = known + u.counts[NEW]
    wrong = np.float32(noise / there)
    for i in range(known):
        P[i] = right * P[i] + wrong
    for y in range(u.counts[SLOTS]):
        if u.is_new[y] > 0:
            at = u.label[y]
            P[at] = right * P[at] + wrong


@kernel
def _without_model(u: Any, theta: Any, F: Any, scores: Any, s: Any) -> None:
    """(W,) what would be believed without the model, over the labels in memory."""
    for y in range(len(s)):
        s[y] = 0
    if len(scores) == 0:
        return
    for y in range(len(scores)):
        scores[y] = 0.0
    for k in range(2, len(theta)):
        for y in range(len(scores)):
            scores[y] += theta[k] * F[k, y]
    softmax64(scores, scores)
    for y in range(len(scores)):
        s[u.label[y]] = scores[y]


@kernel
def predict(
    table: Any, room: Any, x_at: int, logits_at: int, out_at: int, width: int, listed: bool
) -> bool:
    """Predict over ``width`` labels for a key and the model's logits; False if there are ties.

    P, what the model believes and what the memory would go to ``out`` (3, W), what is needed later
    to ``room``. Where logits are alike, whoever asks lists the largest in ``room`` and asks again.
    """
    u = memory_at(table)
    c = constants_at(u.constants)
    freshen(u, c)
    t = u.counts
    d, m, cells = t[DIM], t[SLOTS], t[CELLS]
    b = belief_at(room, t[FEATURES], t[LISTED], d, m, cells)
    x, logits = vector_at(x_at, d), vector_at(logits_at, t[KNOWN])
    out = vector_at(out_at, 3 * width).reshape((3, width))
    P, r, s = out[0], out[1], out[2]
    if not listed and _alike(logits, b.listed, b.value):
        return False
    copy(u.theta, b.theta)
    _look(b, logits, r)
    n = _candidates(u, b)
    b.head[LABELS] = t[KNOWN] + t[NEW]
    off, place = np.empty(d), np.empty((1, d), np.float32)
    subtract(x, u.origin, off)
    put(u, off, b.placed)
    cross(u, b.placed, b.across)
    copy(b.placed, place[0])
    near, said = np.empty((1, cells), np.float32), np.empty((2, n), np.float32)
    nearness(u, c, place, near)
    copy(near[0], b.near)
    votes, base = said[0, :m], said[1]
    listen(u, near[0], votes)
    found = np.empty((2, m))
    along, linear = found[0], found[1]
    products(u.centred, m, b.across.reshape((1, d)), along.reshape((1, m)))
    products(u.rows, m, off.reshape((1, d)), linear.reshape((1, m)))
    factor = tame(u, c, b.head[PEAK])
    _base(u, b, logits, np.float32(factor), base)
    means, spare = np.empty(m, np.float32), np.empty((3, n), np.float32)
    F, chosen = features_of(b, n), np.int64(b.head[CHOSEN])
    own, whole = inner(off, b.across), np.float32(b.head[TOTAL])
    answer = np.int64(b.listed[0])
    gather(u, c, base, chosen, answer, whole, along, own, -1, votes, linear, means, spare, F)
    copy(means, b.means)
    offsets(u, c, n - 1 - m, b.offset[:n])
    weigh(b.theta, F, b.offset[:n], b.scores[:n])
    _believe(u, b, logits, factor, n, P)
    _without_model(u, b.theta, F, along, s)
    return True
