"""The combiner's implicit Newton step, as :mod:`labelmem.logit_memory.weights` has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import copy, part
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.logit.arithmetic import inner, softmax64, solve
from labelmem.engines.numba.logit.evidence import weigh
from labelmem.logit_memory.weights import _EVEN, _LENGTHS, _STEPS

__all__ = ["learn_weights"]


@part
def _loss(
    theta: Any, centre: Any, held: Any, F: Any, offset: Any, true: int, share: Any, p: Any
) -> float:
    """What the step makes small; the belief goes into ``p``, ``share`` is noise and labels."""
    weigh(theta, F, offset, p)
    softmax64(p)
    right, far = (1.0 - share[0]) * p[true] + share[0] / share[1], 0.0
    for i in range(len(theta)):
        for j in range(len(theta)):
            far += (theta[i] - centre[i]) * held[i, j] * (theta[j] - centre[j])
    return far / 2.0 - math.log(right + 1e-300)


@part
def _curve(F: Any, p: Any, share: float, mean: Any, heavy: Any, out: Any) -> None:
    """The curvature of the log-loss (k, k), and the mean of the features (k,)."""
    k, n = F.shape
    for i in range(k):
        mean[i] = inner(F[i], p)
    for i in range(k):
        row = F[i]
        for y in range(n):
            heavy[y] = p[y] * row[y]
        for j in range(i + 1):
            out[i, j] = share * (inner(heavy, F[j]) - mean[i] * mean[j])
            out[j, i] = out[i, j]


@part
def learn_weights(t: Any, F: Any, offset: Any, true: Any, noise: float, labels: float) -> None:
    """Theta and what is held of it after a label: the column of F that was true."""
    k, theta, kept = len(F), at.double(t[at.THETA]), at.double(t[at.OPTIONS])[at.FORGET]
    before, prior = at.double_rows(t[at.HELD]), at.double_rows(t[at.PRIOR])
    start, lost, square = at.double(t[at.START]), 1.0 - kept, np.empty((4, k, k))
    held, curvature, both, lower = square[0], square[1], square[2], square[3]
    line, p, share = np.empty((5, k)), np.empty((2, F.shape[1])), (noise, labels)
    centre, mean, slope, step, tried = line[0], line[1], line[2], line[3], line[4]
    for i in range(k):
        slope[i] = 0.0
        for j in range(k):
            held[i, j] = kept * before[i, j] + lost * prior[i, j]
            slope[i] += lost * prior[i, j] * (start[j] - theta[j])
    solve(held, slope, lower, step)
    for i in range(k):
        theta[i] += step[i]
    copy(theta, centre)
    best = _loss(theta, centre, held, F, offset, true, share, p[0])
    for _ in range(_STEPS):
        right = (1.0 - noise) * p[0, true]
        sure = right / (right + noise / labels + 1e-300)
        _curve(F, p[0], sure, mean, p[1], curvature)
        for i in range(k):
            slope[i] = sure * (F[i, true] - mean[i])
            for j in range(k):
                both[i, j] = held[i, j] + curvature[i, j]
                slope[i] -= held[i, j] * (theta[j] - centre[j])
        solve(both, slope, lower, step)
        for length in _LENGTHS:
            for i in range(k):
                tried[i] = theta[i] + length * step[i]
            found = _loss(tried, centre, held, F, offset, true, share, p[1])
            if found <= best + _EVEN:
                best = found
                copy(tried, theta)
                copy(p[1], p[0])
                break
    for i in range(k):
        for j in range(k):
            before[i, j] = held[i, j] + curvature[i, j]
