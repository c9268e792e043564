"""The layers of the stream combiner as kernels: the scorer of labels, the GRU cell, theta's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import copy, dot, fill, inlined, kernel

__all__ = ["BLOCK", "add_product", "gru", "layer", "scores"]

BLOCK = 64
"""Labels whose hidden units lie in the nearest cache together."""


@inlined
def layer(weights: Any, x: Any) -> Any:
    """Hidden units without bias, above zero."""
    out = np.empty(len(weights), np.float32)
    for u in range(len(weights)):
        out[u] = max(dot(weights[u], x), np.float32(0.0))
    return out


@kernel
def add_product(weights: Any, x: Any, out: Any) -> None:
    """Add ``weights`` (R, F) times a block ``x`` (F, n) to the block ``out`` (R, n)."""
    units, wide = weights.shape
    # Two units and four inputs at once: then numbers are loaded and stored less often.
    pairs, fours = units - units % 2, wide - wide % 4
    for u in range(0, pairs, 2):
        v = u + 1
        for f in range(0, fours, 4):
            a, b, c, d = weights[u, f], weights[u, f + 1], weights[u, f + 2], weights[u, f + 3]
            p, q, r, s = weights[v, f], weights[v, f + 1], weights[v, f + 2], weights[v, f + 3]
            for i in range(BLOCK):
                x0, x1, x2, x3 = x[f, i], x[f + 1, i], x[f + 2, i], x[f + 3, i]
                out[u, i] += (a * x0 + b * x1) + (c * x2 + d * x3)
                out[v, i] += (p * x0 + q * x1) + (r * x2 + s * x3)
    for u in range(units):
        for f in range(fours if u < pairs else 0, wide):
            a = weights[u, f]
            for i in range(BLOCK):
                out[u, i] += a * x[f, i]


@kernel
def scores(w: Any, features: Any, signals: Any, score: Any) -> None:
    """Add to ``score`` (K,) what the scorer makes of the labels' ``features`` (F, K)."""
    units, k, zero = len(w.score_bias), len(score), np.float32(0.0)
    shared = np.empty(units, np.float32)
    for u in range(units):
        shared[u] = dot(w.score_stream[u], signals) + w.score_bias[u]
    # All blocks have the same size, so that loops over them are unrolled; the last has zeros.
    own = np.zeros((len(features), BLOCK), np.float32)
    inner = np.empty((units, BLOCK), np.float32)
    middle = np.empty((units, BLOCK), np.float32)
    added = np.empty(BLOCK, np.float32)
    for first in range(0, k, BLOCK):
        count = min(BLOCK, k - first)
        for f in range(len(features)):
            copy(features[f, first : first + count], own[f])
        for u in range(units):
            for i in range(BLOCK):
                inner[u, i] = shared[u]
                middle[u, i] = zero
        add_product(w.score_inner, own, inner)
        for u in range(units):
            for i in range(BLOCK):
                inner[u, i] = max(inner[u, i], zero)
        add_product(w.score_middle, inner, middle)
        fill(added, zero)
        for f in range(len(features)):
            for i in range(BLOCK):
                added[i] += w.score_plain[f] * own[f, i]
        for u in range(units):
            for i in range(BLOCK):
                added[i] += w.score_outer[u] * max(middle[u, i], zero)
        for i in range(count):
            score[first + i] += added[i]


@inlined
def _sigmoid(x: np.float32) -> np.float32:
    return np.float32(1.0 / (1.0 + math.exp(-x)))


@kernel
def gru(w: Any, seen: Any, mu: Any, out: Any) -> None:
    """The next state (hidden,) of a GRU cell."""
    k = len(mu)
    for u in range(k):
        reset = dot(w.from_input[u], seen) + w.bias_input[u]
        reset += dot(w.from_mu[u], mu) + w.bias_mu[u]
        update = dot(w.from_input[k + u], seen) + w.bias_input[k + u]
        update += dot(w.from_mu[k + u], mu) + w.bias_mu[k + u]
        state = dot(w.from_mu[2 * k + u], mu) + w.bias_mu[2 * k + u]
        new = dot(w.from_input[2 * k + u], seen) + w.bias_input[2 * k + u]
        new = np.float32(math.tanh(new + _sigmoid(reset) * state))
        out[u] = new + _sigmoid(update) * (mu[u] - new)
