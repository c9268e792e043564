"""A kernel for Eq. 4: what ``fast/label.py`` says, in one call.

States lie in rows, one for each hidden unit, and labels are taken in blocks along the rows. A label
counts as near the background if the length of what lies between their states, times the longest row
of weights, is small: no input of a gate can differ by more than that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import copy, dot, exp, fill, kernel, largest
from labelmem.compiled.mix import believe, mix_each
from labelmem.compiled.scorer import BLOCK, add_product

__all__ = ["label_step", "remember_scores"]

_NEAR = np.float32(math.sqrt(np.finfo(np.float32).eps))
_ONE, _TWO, _FAR = np.float32(1.0), np.float32(2.0), np.float32(40.0)


@kernel
def _sigmoid(x: np.float32) -> np.float32:
    return _ONE / (_ONE + exp(min(-x, _FAR)))


@kernel
def _tanh(x: np.float32) -> np.float32:
    return _ONE - _TWO / (_ONE + exp(min(_TWO * x, _FAR)))


@kernel
def _cell(
    from_mu: Any, bias_mu: Any, from_scores: Any, shared: Any, mu: Any, scores: Any, room: Any
) -> None:
    """The next states of a block of labels, in place: ``mu`` (hidden, n), r and s (2, n)."""
    k = len(mu)
    state, seen = room[: 3 * k], room[3 * k :]
    for u in range(3 * k):
        for i in range(BLOCK):
            state[u, i] = bias_mu[u]
            seen[u, i] = (
                shared[u] + from_scores[u, 0] * scores[0, i] + from_scores[u, 1] * scores[1, i]
            )
    add_product(from_mu, mu, state)
    for u in range(k):
        for i in range(BLOCK):
            reset = _sigmoid(state[u, i] + seen[u, i])
            new = _tanh(seen[2 * k + u, i] + reset * state[2 * k + u, i])
            update = _sigmoid(state[k + u, i] + seen[k + u, i])
            mu[u, i] = new + update * (mu[u, i] - new)


@kernel
def _tangent(from_mu: Any, bias_mu: Any, from_scores: Any, shared: Any, mu: Any) -> tuple[Any, Any]:
    """At the state (hidden,) without scores: the next one, and how it moves with state, r and s.

    The second is (hidden, hidden + 2), filled up with zeros to a multiple of four columns.
    """
    k = len(mu)
    moved, by = np.empty(k, np.float32), np.zeros((k, (k + 5) // 4 * 4), np.float32)
    for u in range(k):
        state = dot(from_mu[2 * k + u], mu) + bias_mu[2 * k + u]
        reset = _sigmoid(dot(from_mu[u], mu) + bias_mu[u] + shared[u])
        update = _sigmoid(dot(from_mu[k + u], mu) + bias_mu[k + u] + shared[k + u])
        new = _tanh(shared[2 * k + u] + reset * state)
        slope = (_ONE - update) * (_ONE - new * new)
        by_reset = slope * state * reset * (_ONE - reset)
        by_update = (mu[u] - new) * update * (_ONE - update)
        for j in range(k):
            by[u, j] = by_reset * from_mu[u, j] + by_update * from_mu[k + u, j]
            by[u, j] += slope * reset * from_mu[2 * k + u, j]
        by[u, u] += update
        for j in range(2):
            by[u, k + j] = by_reset * from_scores[u, j] + by_update * from_scores[k + u, j]
            by[u, k + j] += slope * from_scores[2 * k + u, j]
        moved[u] = new + update * (mu[u] - new)
    return moved, by


@kernel
def _column(x: Any, column: int) -> Any:
    found = np.empty(len(x), np.float32)
    for u in range(len(x)):
        found[u] = x[u, column]
    return found


@kernel
def _longest(weights: Any) -> np.float32:
    """The length of the longest row."""
    found = np.float32(0.0)
    for u in range(len(weights)):
        found = max(found, dot(weights[u], weights[u]))
    return np.float32(math.sqrt(found))


@kernel
def _move_near(by: Any, rest: Any, mu: Any, r: Any, s: Any, limit: Any, out: Any, far: Any) -> int:
    """Move all labels by the tangent, into ``out``; how many are too far for it, listed in ``far``.

    ``limit`` is how much of a label's state, and of its scores, reaches the gates.
    """
    k, labels = mu.shape
    x, moved = np.zeros((by.shape[1], BLOCK), np.float32), np.empty((k, BLOCK), np.float32)
    apart = np.empty(BLOCK, np.float32)
    background, count = _column(mu, 0), 0
    for first in range(0, labels, BLOCK):
        n = min(BLOCK, labels - first)
        for u in range(k):
            copy(mu[u, first : first + n], x[u])
        copy(r[first : first + n], x[k])
        copy(s[first : first + n], x[k + 1])
        fill(apart, np.float32(0.0))
        for u in range(k):
            for i in range(BLOCK):
                apart[i] += (x[u, i] - background[u]) * (x[u, i] - background[u])
                moved[u, i] = rest[u]
        add_product(by, x, moved)
        for u in range(k):
            copy(moved[u, :n], out[u, first:])
        for i in range(BLOCK):
            reach = limit[0] * np.float32(math.sqrt(apart[i]))
            apart[i] = reach + limit[1] * (x[k, i] + x[k + 1, i])
        for i in range(n):
            if apart[i] > _NEAR:
                far[count] = first + i
                count += 1
    return count


@kernel
def label_step(
    from_h: Any,
    from_flags: Any,
    from_scores: Any,
    from_mu: Any,
    bias_input: Any,
    bias_mu: Any,
    to_theta: Any,
    bias_theta: Any,
    h: Any,
    missed: Any,
    mu: Any,
    r: Any,
    s: Any,
    logits: Any,
    names: Any,
    score: Any,
    partition: bool,
    out: Any,
    next_mu: Any,
) -> None:
    """Eq. 1, 4 and 5: P, theta, r and s are the rows of ``out`` (4, W).

    ``mu`` and ``next_mu`` (hidden, A) are states, ``r`` and ``s`` (A,) the scores of one step ago;
    the first label is the background, and the labels of the model follow.
    """
    k, labels = mu.shape
    shared = np.empty(3 * k, np.float32)
    for u in range(3 * k):
        shared[u] = dot(from_h[u], h) + dot(from_flags[u], missed) + bias_input[u]
    background, rest = _column(mu, 0), np.empty(k, np.float32)
    own, by = _tangent(from_mu, bias_mu, from_scores, shared, background)
    for u in range(k):
        rest[u] = own[u] - dot(by[u, :k], background)
    limit = (_longest(from_mu), _longest(from_scores))
    far = np.empty(labels, np.int64)
    count = _move_near(by, rest, mu, r, s, limit, next_mu, far)
    x, scores = np.zeros((k, BLOCK), np.float32), np.zeros((2, BLOCK), np.float32)
    room = np.empty((6 * k, BLOCK), np.float32)
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        for i in range(n):
            y = far[first + i]
            scores[0, i], scores[1, i] = r[y], s[y]
            for u in range(k):
                x[u, i] = mu[u, y]
        _cell(from_mu, bias_mu, from_scores, shared, x, scores, room)
        for i in range(n):
            for u in range(k):
                next_mu[u, far[first + i]] = x[u, i]
    for u in range(k):
        next_mu[u, 0] = own[u]
    theta, wide = out[1], out.shape[1]
    fill(theta, bias_theta[0])
    for u in range(k):
        row = next_mu[u, 1 : 1 + wide]
        for y in range(wide):
            theta[y] += to_theta[u] * row[y]
    for y in range(wide):
        theta[y] = _sigmoid(theta[y])
    believe(logits, out[2])
    mix_each(out[2], names, score, theta, partition, out[3], out[0])


@kernel
def remember_scores(r: Any, s: Any, y: int, next_r: Any, next_s: Any, missed: Any) -> None:
    """Scores (W,) behind the background's (A,), and whether their best labels were not ``y``."""
    _keep(r, next_r)
    _keep(s, next_s)
    missed[0], missed[1] = _misses(r, y), _misses(s, y)


@kernel
def _keep(scores: Any, out: Any) -> None:
    wide = len(scores)
    out[0] = 0
    copy(scores, out[1:])
    fill(out[1 + wide :], np.float32(0.0))


@kernel
def _misses(scores: Any, y: int) -> int:
    top = largest(scores)
    if y >= len(scores) or scores[y] < top or top <= 0:
        return 1
    for earlier in range(y):  # of labels that score alike the first counts
        if scores[earlier] == top:
            return 1
    return 0
