"""The cell of Eq. 4 as a kernel, and its tangent.

States lie in rows, one for each hidden unit, and labels are taken in blocks along the rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import dot, exp, kernel
from labelmem.compiled.scorer import BLOCK, add_product

__all__ = ["cell", "longest", "sigmoid", "tangent", "tanh"]

_ONE, _TWO, _FAR = np.float32(1.0), np.float32(2.0), np.float32(40.0)


@kernel
def sigmoid(x: np.float32) -> np.float32:
    """1 / (1 + exp(-x)), on many lanes."""
    return _ONE / (_ONE + exp(min(-x, _FAR)))


@kernel
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, likewise."""
    return _ONE - _TWO / (_ONE + exp(min(_TWO * x, _FAR)))


@kernel
def cell(
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
            reset = sigmoid(state[u, i] + seen[u, i])
            new = tanh(seen[2 * k + u, i] + reset * state[2 * k + u, i])
            update = sigmoid(state[k + u, i] + seen[k + u, i])
            mu[u, i] = new + update * (mu[u, i] - new)


@kernel
def tangent(from_mu: Any, bias_mu: Any, from_scores: Any, shared: Any, mu: Any) -> tuple[Any, Any]:
    """At the state (hidden,) without scores: the next one, and how it moves with state, r and s.

    The second is (hidden, hidden + 2), filled up with zeros to a multiple of four columns.
    """
    k = len(mu)
    moved, by = np.empty(k, np.float32), np.zeros((k, (k + 5) // 4 * 4), np.float32)
    for u in range(k):
        state = dot(from_mu[2 * k + u], mu) + bias_mu[2 * k + u]
        reset = sigmoid(dot(from_mu[u], mu) + bias_mu[u] + shared[u])
        update = sigmoid(dot(from_mu[k + u], mu) + bias_mu[k + u] + shared[k + u])
        new = tanh(shared[2 * k + u] + reset * state)
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
def longest(weights: Any) -> np.float32:
    """The length of the longest row."""
    found = np.float32(0.0)
    for u in range(len(weights)):
        found = max(found, dot(weights[u], weights[u]))
    return np.float32(math.sqrt(found))
