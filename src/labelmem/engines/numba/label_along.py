"""A kernel for Eq. 4 along a stretch of steps, for many streams on a CPU.

States lie in rows, one for each hidden unit, and labels are taken in blocks along the rows, each
block through all steps. In a block's ``x`` the two rows behind the states are r and s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem.engines.numba import exp, kernel
from labelmem.engines.numba.scorer import BLOCK, add_product

__all__ = ["gates_of", "joined_weights", "label_steps", "move", "put_in", "sigmoid", "take_up"]
__all__ += ["tanh", "thetas_of"]

_ZERO, _ONE, _TWO, _FAR = (np.float32(x) for x in (0.0, 1.0, 2.0, 40.0))


def label_steps(
    mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, *weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Theta (n, T, A) of every step, and the states (n, A, hidden) after the last.

    Parameters are those of :func:`labelmem.unrolling.theta.thetas`, and the weights of
    :meth:`labelmem.label_combiner.LabelCombiner.cell_weights`.
    """
    theta, end = torch.empty_like(r), torch.empty_like(mu)
    given = [x.detach().numpy() for x in (mu, r, s, shared, theta, end)]
    _along(*[*joined_weights(*weights), *given])
    return theta, end


def joined_weights(
    weight_mu: Tensor,
    bias_mu: Tensor,
    weight_scores: Tensor,
    weight_theta: Tensor,
    bias_theta: Tensor,
) -> tuple[Any, ...]:
    """The weights of a block's ``x``, and the others.

    Scores enter the new state beside the reset gate, not through it: there they have a column of
    zeros, and weights of their own.
    """
    hidden = len(weight_theta)
    joined = np.zeros((3 * hidden, (hidden + 5) // 4 * 4), np.float32)
    joined[:, :hidden] = weight_mu.detach()
    joined[: 2 * hidden, hidden : hidden + 2] = weight_scores.detach()[: 2 * hidden]
    fresh = np.ascontiguousarray(weight_scores.detach()[2 * hidden :].numpy())
    start = np.float32(bias_theta.detach())
    return joined, bias_mu.detach().numpy(), fresh, weight_theta.detach().numpy(), start


@kernel
def sigmoid(x: np.float32) -> np.float32:
    """1 / (1 + exp(-x)), vectorised."""
    return _ONE / (_ONE + exp(min(-x, _FAR)))


@kernel
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, vectorised."""
    return _ONE - _TWO / (_ONE + exp(min(_TWO * x, _FAR)))


@kernel
def take_up(x: Any, mu: Any, first: int, count: int) -> None:
    """The states (A, hidden) of a block of labels into ``x``."""
    for u in range(mu.shape[1]):
        for i in range(BLOCK):
            x[u, i] = mu[first + i, u] if i < count else _ZERO


@kernel
def put_in(x: Any, row: int, score: Any, first: int, count: int) -> None:
    """Scores (A,) of a block of labels into a row of ``x``."""
    for i in range(count):
        x[row, i] = score[first + i]


@kernel
def gates_of(joined: Any, bias: Any, fresh: Any, shared: Any, x: Any, gates: Any) -> None:
    """Reset, update, what is reset, and the new state (4 hidden, n) of a block of labels."""
    k = len(fresh)
    for u in range(3 * k):
        base = bias[u] + shared[u] if u < 2 * k else bias[u]
        for i in range(BLOCK):
            gates[u, i] = base
    add_product(joined, x, gates[: 3 * k])
    for u in range(k):
        base, by_r, by_s = shared[2 * k + u], fresh[u, 0], fresh[u, 1]
        for i in range(BLOCK):
            reset = sigmoid(gates[u, i])
            gates[u, i] = reset
            gates[k + u, i] = sigmoid(gates[k + u, i])
            inside = base + by_r * x[k, i] + by_s * x[k + 1, i] + reset * gates[2 * k + u, i]
            gates[3 * k + u, i] = tanh(inside)


@kernel
def move(x: Any, gates: Any, out: Any) -> None:
    """The next states into the first rows of ``out``."""
    k = len(gates) // 4
    for u in range(k):
        for i in range(BLOCK):
            new = gates[3 * k + u, i]
            out[u, i] = new + gates[k + u, i] * (x[u, i] - new)


@kernel
def thetas_of(to_theta: Any, start: np.float32, x: Any, out: Any) -> None:
    """Theta of a block of labels from their states."""
    for i in range(BLOCK):
        out[i] = start
    for u in range(len(to_theta)):
        for i in range(BLOCK):
            out[i] += to_theta[u] * x[u, i]
    for i in range(BLOCK):
        out[i] = sigmoid(out[i])


@kernel
def _along(
    joined: Any, bias: Any, fresh: Any, to_theta: Any, start: np.float32,
    mu: Any, r: Any, s: Any, shared: Any, theta: Any, end: Any,
) -> None:  # fmt: skip
    n, steps, labels = r.shape
    k = len(to_theta)
    # States before and after a step never lie in the same place, or they would go one by one.
    x = np.zeros((2, joined.shape[1], BLOCK), np.float32)
    gates, found = np.empty((4 * k, BLOCK), np.float32), np.empty(BLOCK, np.float32)
    for row in range(n):
        for first in range(0, labels, BLOCK):
            count = min(BLOCK, labels - first)
            take_up(x[0], mu[row], first, count)
            for t in range(steps):
                old, new = x[t % 2], x[(t + 1) % 2]
                put_in(old, k, r[row, t], first, count)
                put_in(old, k + 1, s[row, t], first, count)
                gates_of(joined, bias, fresh, shared[row, t], old, gates)
                move(old, gates, new)
                thetas_of(to_theta, start, new, found)
                for i in range(count):
                    theta[row, t, first + i] = found[i]
            for u in range(k):
                for i in range(count):
                    end[row, first + i, u] = x[steps % 2, u, i]
