"""A kernel for the gradient of Eq. 4 along a stretch of steps, for many streams on a CPU.

A block of labels is taken through all steps again, gates and states are kept while it is in the
cache, and then it goes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem.engines.numba import dot, kernel, total
from labelmem.engines.numba.label_along import (
    gates_of,
    joined_weights,
    move,
    put_in,
    take_up,
    thetas_of,
)
from labelmem.engines.numba.scorer import BLOCK, add_product

__all__ = ["label_steps_gradient"]

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


def label_steps_gradient(
    mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, *others: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of ``shared`` and of the five weights, by that of theta (n, T, A).

    ``others`` are the weights and the latter.
    """
    *weights, by_theta = others
    hidden = mu.shape[2]
    joined = joined_weights(*weights)
    # Sums are taken with more digits: they are of millions of numbers.
    of_shared, of_joined = np.zeros(shared.shape), np.zeros(joined[0].shape)
    of_fresh, of_state, of_theta = (np.zeros((hidden, k)) for k in (2, 1, 2))
    given = [x.detach().numpy() for x in (mu, r, s, shared, by_theta)]
    found = [of_shared, of_joined, of_fresh, of_state, of_theta]
    _walk_back(*[*joined, *given, *found])
    of_scores = of_joined[:, hidden : hidden + 2].copy()
    of_scores[2 * hidden :] = of_fresh
    # The bias of the states lies inside of what the reset gate lets through to the new state.
    of_bias = of_shared.sum(axis=(0, 1))
    of_bias[2 * hidden :] = of_state[:, 0]
    sums = (of_shared, of_joined[:, :hidden], of_bias, of_scores, of_theta[:, 0], of_theta[0, 1])
    return tuple(torch.as_tensor(x, dtype=mu.dtype) for x in sums)


@kernel
def _add_outer(d: Any, x: Any, out: Any) -> None:
    """Add the products of the rows of ``d`` (R, n) and of ``x`` (F, n), F a multiple of four."""
    for u in range(0, len(d) - 1, 2):
        for f in range(0, len(x), 4):  # eight sums at once, each on many lanes
            a, b, c, e = _ZERO, _ZERO, _ZERO, _ZERO
            p, q, v, w = _ZERO, _ZERO, _ZERO, _ZERO
            for i in range(BLOCK):
                x0, x1, x2, x3 = x[f, i], x[f + 1, i], x[f + 2, i], x[f + 3, i]
                d0, d1 = d[u, i], d[u + 1, i]
                a += d0 * x0
                b += d0 * x1
                c += d0 * x2
                e += d0 * x3
                p += d1 * x0
                q += d1 * x1
                v += d1 * x2
                w += d1 * x3
            for column, (first, second) in enumerate(((a, p), (b, q), (c, v), (e, w))):
                out[u, f + column] += first
                out[u + 1, f + column] += second
    if len(d) % 2:
        last = len(d) - 1
        for f in range(len(x)):
            out[last, f] += dot(d[last], x[f])


@kernel
def _slopes(to_theta: Any, slope: Any, x: Any, gates: Any, back: Any, d: Any) -> None:
    """From the slope by the next states, ``back``, to that by what enters the gates, ``d``.

    What is left in ``back`` went past the gates.
    """
    k = len(to_theta)
    for u in range(k):
        for i in range(BLOCK):
            reset, update = gates[u, i], gates[k + u, i]
            state, new = gates[2 * k + u, i], gates[3 * k + u, i]
            own = back[u, i] + slope[i] * to_theta[u]
            by_new = own * (_ONE - update) * (_ONE - new * new)
            d[u, i] = by_new * state * reset * (_ONE - reset)
            d[k + u, i] = own * (x[u, i] - new) * update * (_ONE - update)
            d[2 * k + u, i] = by_new * reset
            d[3 * k + u, i] = by_new
            back[u, i] = own * update


@kernel
def _walk_back(
    joined: Any, bias: Any, fresh: Any, to_theta: Any, start: np.float32,
    mu: Any, r: Any, s: Any, shared: Any, by_theta: Any,
    of_shared: Any, of_joined: Any, of_fresh: Any, of_state: Any, of_theta: Any,
) -> None:  # fmt: skip
    n, steps, labels = r.shape
    k = len(to_theta)
    turned = np.empty((k, 3 * k), np.float32)
    for u in range(k):
        for v in range(3 * k):
            turned[u, v] = joined[v, u]
    x = np.zeros((steps + 1, joined.shape[1], BLOCK), np.float32)
    gates = np.empty((steps, 4 * k, BLOCK), np.float32)
    d, back = np.empty((4 * k, BLOCK), np.float32), np.empty((k, BLOCK), np.float32)
    slope = np.empty(BLOCK, np.float32)
    for row in range(n):
        for first in range(0, labels, BLOCK):
            count = min(BLOCK, labels - first)
            take_up(x[0], mu[row], first, count)
            for t in range(steps):
                put_in(x[t], k, r[row, t], first, count)
                put_in(x[t], k + 1, s[row, t], first, count)
                gates_of(joined, bias, fresh, shared[row, t], x[t], gates[t])
                move(x[t], gates[t], x[t + 1])
            for u in range(k):
                for i in range(BLOCK):
                    back[u, i] = _ZERO
            for t in range(steps - 1, -1, -1):
                thetas_of(to_theta, start, x[t + 1], slope)
                for i in range(count):
                    slope[i] *= (_ONE - slope[i]) * by_theta[row, t, first + i]
                for i in range(count, BLOCK):  # there is no label
                    slope[i] = _ZERO
                _slopes(to_theta, slope, x[t], gates[t], back, d)
                add_product(turned, d[: 3 * k], back)
                _add_outer(d[: 3 * k], x[t], of_joined)
                of_theta[0, 1] += total(slope)
                for u in range(k):
                    of_theta[u, 0] += dot(slope, x[t + 1, u])
                    of_state[u, 0] += total(d[2 * k + u])
                    of_fresh[u, 0] += dot(d[3 * k + u], x[t, k])
                    of_fresh[u, 1] += dot(d[3 * k + u], x[t, k + 1])
                    of_shared[row, t, u] += total(d[u])
                    of_shared[row, t, k + u] += total(d[k + u])
                    of_shared[row, t, 2 * k + u] += total(d[3 * k + u])
