"""Eq. 5 and the margin for one stream: passes over all labels only where all of them change."""

from __future__ import annotations

import math

import numpy as np

from labelmem.fast import Array

__all__ = ["margin_lost", "mix_one"]


def mix_one(r: Array, s: Array, theta: float | Array, names: Array, partition: bool) -> Array:
    """:func:`labelmem.functional.mix` for one stream, where s is zero but for a few labels.

    Parameters
    ----------
    r
        (W,) the model's belief.
    s
        (Y,) the memory's belief in the labels it holds.
    theta
        The memory's weight, one for all labels or (W,).
    names
        (Y,) the labels in memory, each once.
    partition
        Whether labels in memory are left to the memory: :func:`labelmem.functional.outside`.

    Examples
    --------
    >>> mix_one(np.array([0.8, 0.2]), np.array([1.0]), 0.5, np.array([1]), partition=False)
    array([0.4, 0.6])
    """
    if partition:
        r = r.copy()
        r[names[s > 0]] = 0
        total = np.add.reduce(r)
        r /= total if total > 0 else 1
    if not np.count_nonzero(s):
        return r
    P: Array = (1 - theta) * r
    P[names] += (theta if isinstance(theta, float) else theta[names]) * s
    total = np.add.reduce(P)
    if total > 0:
        P /= total
        return P
    return r


def margin_lost(P: Array, y: int, margin: float) -> tuple[bool, bool]:
    """:func:`labelmem.functional.margin_loss` for one stream: whether there is a loss, and P wrong.

    Examples
    --------
    >>> margin_lost(np.array([0.5, 0.5]), 0, 1.0), margin_lost(np.array([1.0, 0.0]), 1, 1.0)
    ((True, False), (True, True))
    """
    p_y = float(P[y]) if y < len(P) else 0.0
    below, above = np.maximum.reduce(P[:y], initial=0), np.maximum.reduce(P[y + 1 :], initial=0)
    best = float(max(below, above))
    if p_y <= 0 or margin == math.inf:
        return True, p_y < best
    if best <= 0:
        return False, False
    # In the type of P, so that a lead of just the margin is no loss here if it is none there.
    p_y_typed, best_typed = P.dtype.type(p_y), P.dtype.type(best)
    return bool(P.dtype.type(margin) - (np.log(p_y_typed) - np.log(best_typed)) > 0), p_y < best
