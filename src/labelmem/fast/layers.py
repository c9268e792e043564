"""Layers for one stream on a CPU, in numpy."""

from __future__ import annotations

import numpy as np

from labelmem.fast import Array

__all__ = ["gru", "linear"]


def linear(x: Array, weight: Array, bias: Array) -> Array:
    """Outputs (e,) of an input (d,), the weight (e, d) as ``nn.Linear`` has it.

    Examples
    --------
    >>> linear(np.ones(2), np.array([[1.0, 2.0]]), np.array([0.5]))
    array([3.5])
    """
    out: Array = weight @ x
    out += bias
    return out


def gru(
    x: Array, h: Array, from_input: Array, from_state: Array, bias_input: Array, bias_state: Array
) -> Array:
    """The next state (d,) of a GRU cell from the input x (e,), weights as in ``nn.GRU``."""
    given, kept = linear(x, from_input, bias_input), linear(h, from_state, bias_state)
    k = len(h)
    reset, update = 1 / (1 + np.exp(-(given[: 2 * k] + kept[: 2 * k]).reshape(2, k)))
    new = np.tanh(given[2 * k :] + reset * kept[2 * k :])
    moved: Array = new + update * (h - new)
    return moved
