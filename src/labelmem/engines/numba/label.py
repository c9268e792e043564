"""A kernel for one step of Eq. 4: the paper's combiner, one stream on a CPU.

Most labels have hardly any score, so their states stay close to the background state. The GRU cell
is linear there up to rounding: if no gate's input differs from the background's by more than the
square root of the type's epsilon, the error of its tangent is of the order of epsilon. One small
matrix then moves all of these labels. The others take the cell.

States lie in rows, one for each hidden unit, so that a block of labels is copied row by row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import copy, dot, fill, kernel, largest
from labelmem.engines.numba.label_along import gates_of, move, sigmoid, tanh, thetas_of
from labelmem.engines.numba.mix import believe, mix_each
from labelmem.engines.numba.scorer import BLOCK, add_product

__all__ = ["LabelWeights", "label_step", "missed_by"]


_NEAR = np.float32(math.sqrt(np.finfo(np.float32).eps))


class LabelWeights(NamedTuple):
    """The weights of a :class:`labelmem.label_combiner.LabelCombiner`, by its names."""

    weight_h: Any
    weight_flags: Any
    weight_scores: Any
    weight_mu: Any
    bias_input: Any
    bias_mu: Any
    weight_theta: Any
    bias_theta: Any
    """(1,)."""


@kernel
def _joined(w: LabelWeights) -> tuple[Any, Any]:
    """Weights of states and scores as ``label_along.gates_of`` wants them."""
    k = len(w.weight_theta)
    joined, fresh = np.zeros((3 * k, (k + 5) // 4 * 4), np.float32), np.empty((k, 2), np.float32)
    for u in range(3 * k):
        copy(w.weight_mu[u], joined[u])
        copy(w.weight_scores[u], joined[u, k:] if u < 2 * k else fresh[u - 2 * k])
    return joined, fresh


@kernel
def _tangent(w: LabelWeights, shared: Any, mu: Any) -> tuple[Any, Any]:
    """The next state (hidden,) of ``mu`` without scores, and how it moves with state, r and s.

    The second is (hidden, hidden + 2), filled up with zeros to a multiple of four columns.
    """
    k, one = len(mu), np.float32(1.0)
    moved, by = np.empty(k, np.float32), np.zeros((k, (k + 5) // 4 * 4), np.float32)
    for u in range(k):
        state = dot(w.weight_mu[2 * k + u], mu) + w.bias_mu[2 * k + u]
        reset = sigmoid(dot(w.weight_mu[u], mu) + w.bias_mu[u] + shared[u])
        update = sigmoid(dot(w.weight_mu[k + u], mu) + w.bias_mu[k + u] + shared[k + u])
        new = tanh(shared[2 * k + u] + reset * state)
        slope = (one - update) * (one - new * new)
        by_reset = slope * state * reset * (one - reset)
        by_update = (mu[u] - new) * update * (one - update)
        for j in range(k):
            by[u, j] = by_reset * w.weight_mu[u, j] + by_update * w.weight_mu[k + u, j]
            by[u, j] += slope * reset * w.weight_mu[2 * k + u, j]
        by[u, u] += update
        for j in range(2):
            by[u, k + j] = by_reset * w.weight_scores[u, j] + by_update * w.weight_scores[k + u, j]
            by[u, k + j] += slope * w.weight_scores[2 * k + u, j]
        moved[u] = new + update * (mu[u] - new)
    return moved, by


@kernel
def _longest(weights: Any) -> np.float32:
    """The length of the longest row."""
    found = np.float32(0.0)
    for u in range(len(weights)):
        found = max(found, dot(weights[u], weights[u]))
    return np.float32(math.sqrt(found))


@kernel
def _far(x: Any, background: Any, of_mu: np.float32, of_scores: np.float32, apart: Any) -> None:
    """By how much, at most, the gates' inputs of a block of labels differ from the background's."""
    k = len(background)
    fill(apart, np.float32(0.0))
    for u in range(k):
        for i in range(BLOCK):
            apart[i] += (x[u, i] - background[u]) * (x[u, i] - background[u])
    for i in range(BLOCK):
        apart[i] = of_mu * np.float32(math.sqrt(apart[i])) + of_scores * (x[k, i] + x[k + 1, i])


@kernel
def _move_near(
    w: LabelWeights, shared: Any, mu: Any, r: Any, s: Any, theta: Any, moved: Any, far: Any
) -> int:
    """Move all labels by the tangent; how many are too far for it, listed in ``far``."""
    k, labels = mu.shape
    background, count = mu[:, 0].copy(), 0
    own, by = _tangent(w, shared, background)
    reach = (_longest(w.weight_mu), _longest(w.weight_scores))
    x, new = np.zeros((by.shape[1], BLOCK), np.float32), np.empty((k, BLOCK), np.float32)
    apart, found = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    for first in range(0, labels, BLOCK):
        n = min(BLOCK, labels - first)
        for u in range(k):
            copy(mu[u, first : first + n], x[u])
            fill(new[u], own[u] - dot(by[u, :k], background))
        copy(r[first : first + n], x[k])
        copy(s[first : first + n], x[k + 1])
        add_product(by, x, new)
        thetas_of(w.weight_theta, w.bias_theta[0], new, found)
        copy(found[:n], theta[first:])
        for u in range(k):
            copy(new[u, :n], moved[u, first:])
        _far(x, background, reach[0], reach[1], apart)
        for i in range(n):
            if apart[i] > _NEAR:
                far[count] = first + i
                count += 1
    return count


@kernel
def _move_far(
    w: LabelWeights, shared: Any, mu: Any, r: Any, s: Any, theta: Any, moved: Any, far: Any
) -> None:
    """Move the labels listed in ``far`` by the cell itself."""
    k = len(mu)
    joined, fresh = _joined(w)
    x = np.zeros((2, joined.shape[1], BLOCK), np.float32)
    gates, found = np.empty((4 * k, BLOCK), np.float32), np.empty(BLOCK, np.float32)
    for first in range(0, len(far), BLOCK):
        n = min(BLOCK, len(far) - first)
        for i in range(n):
            y = far[first + i]
            x[0, k, i], x[0, k + 1, i] = r[y], s[y]
            for u in range(k):
                x[0, u, i] = mu[u, y]
        gates_of(joined, w.bias_mu, fresh, shared, x[0], gates)
        move(x[0], gates, x[1])
        thetas_of(w.weight_theta, w.bias_theta[0], x[1], found)
        for i in range(n):
            y = far[first + i]
            theta[y] = found[i]
            for u in range(k):
                moved[u, y] = x[1, u, i]


@kernel
def label_step(
    w: LabelWeights,
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
    moved: Any,
) -> None:
    """Eq. 1, 4 and 5: P, theta, r and s are the rows of ``out`` (4, W).

    ``mu`` and ``moved`` (hidden, A) are states, ``r`` and ``s`` (A,) the scores of one step ago;
    the first slot is the background, and the labels follow.
    """
    k, labels = mu.shape
    theta, far = np.empty(labels, np.float32), np.empty(labels, np.int64)
    shared = np.empty(3 * k, np.float32)
    for u in range(3 * k):
        shared[u] = dot(w.weight_h[u], h) + dot(w.weight_flags[u], missed) + w.bias_input[u]
    count = _move_near(w, shared, mu, r, s, theta, moved, far)
    _move_far(w, shared, mu, r, s, theta, moved, far[:count])
    copy(theta[1 : 1 + out.shape[1]], out[1])
    believe(logits, out[2])
    mix_each(out[2], names, score, out[1], partition, out[3], out[0])


@kernel
def missed_by(scores: Any, y: int) -> bool:
    """Whether the best label of the scores (W,) is not ``y``; the first counts among equals."""
    top = largest(scores)
    if y >= len(scores) or scores[y] < top or top <= 0:
        return True
    for earlier in range(y):
        if scores[earlier] == top:
            return True
    return False
