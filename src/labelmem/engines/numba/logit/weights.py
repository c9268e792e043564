"""The combiner's implicit Newton step, as :mod:`labelmem.logit_memory.weights` has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import kernel
from labelmem.engines.numba.logit.arithmetic import inner, softmax64, solve
from labelmem.engines.numba.logit.evidence import weigh

__all__ = ["learn_weights"]

_STEPS = 3
_LENGTHS = (1.0, 0.5, 0.25, 0.1)


@kernel
def _loss(
    theta: Any, centre: Any, held: Any, F: Any, offset: Any, true: int, share: Any, p: Any
) -> float:
    """What the step makes small; the belief goes into ``p``, ``share`` is noise and labels."""
    weigh(theta, F, offset, p)
    softmax64(p, p)
    right = (1.0 - share[0]) * p[true] + share[0] / share[1]
    far = 0.0
    for i in range(len(theta)):
        for j in range(len(theta)):
            far += (theta[i] - centre[i]) * held[i, j] * (theta[j] - centre[j])
    return far / 2.0 - math.log(right + 1e-300)


@kernel
def _curve(F: Any, p: Any, share: float, mean: Any, out: Any) -> None:
    """The curvature of the log-loss (k, k), and the mean of the features (k,)."""
    k, n = F.shape
    heavy = np.empty(n)
    for i in range(k):
        mean[i] = inner(F[i], p)
    for i in range(k):
        row = F[i]
        for y in range(n):
            heavy[y] = p[y] * row[y]
        for j in range(i + 1):
            out[i, j] = share * (inner(heavy, F[j]) - mean[i] * mean[j])
            out[j, i] = out[i, j]


@kernel
def learn_weights(
    u: Any, c: Any, F: Any, offset: Any, true: int, noise: float, labels: float
) -> None:
    """Theta and what is held of it after a label: the column of F that was true."""
    k, n, theta = F.shape[0], F.shape[1], u.theta
    held, lost = np.empty((k, k)), 1.0 - c.forget
    room = np.empty((6, k))
    back, centre, mean, slope, step, tried = room[0], room[1], room[2], room[3], room[4], room[5]
    for i in range(k):
        back[i] = 0.0
        for j in range(k):
            held[i, j] = c.forget * u.held[i, j] + lost * u.prior[i, j]
            back[i] += lost * u.prior[i, j] * (u.start[j] - theta[j])
    solve(held, back, step)
    for i in range(k):
        centre[i] = theta[i] + step[i]
        theta[i] = centre[i]
    p, curvature, both = np.empty(n), np.empty((k, k)), np.empty((k, k))
    share = (noise, labels)
    best = _loss(theta, centre, held, F, offset, true, share, p)
    for _ in range(_STEPS):
        right = (1.0 - noise) * p[true]
        part = right / (right + noise / labels + 1e-300)
        _curve(F, p, part, mean, curvature)
        for i in range(k):
            slope[i] = part * (F[i, true] - mean[i])
            for j in range(k):
                both[i, j] = held[i, j] + curvature[i, j]
                slope[i] -= held[i, j] * (theta[j] - centre[j])
        solve(both, slope, step)
        found = math.inf
        for length in _LENGTHS:
            for i in range(k):
                tried[i] = theta[i] + length * step[i]
            found = _loss(tried, centre, held, F, offset, true, share, p)
            if found <= best + c.even:
                break
        if found <= best + c.even:
            for i in range(k):
                theta[i] = tried[i]
            best = found
        else:
            best = _loss(theta, centre, held, F, offset, true, share, p)
    for i in range(k):
        for j in range(k):
            u.held[i, j] = held[i, j] + curvature[i, j]
