"""Kernels for what many streams' predictions are worth, without rows of all labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import fill, inlined, kernel, kernel_of_rows, largest
from labelmem.engines.numba.rows import Mixture, believe_and_mix

__all__ = ["worth_rows"]

_BLOCK = 64  # labels that are passed over at once where none is among the best


@inlined
def _above(P: Any, p: np.float32) -> np.float32:
    """How many are above p: counted in floats, which is exact up to 16 million labels."""
    found, one = np.float32(0.0), np.float32(1.0)
    for i in range(len(P)):
        found += one if P[i] > p else np.float32(0.0)
    return found


@inlined
def _equal(P: Any, p: np.float32) -> np.float32:
    found, one = np.float32(0.0), np.float32(1.0)
    for i in range(len(P)):
        found += one if P[i] == p else np.float32(0.0)
    return found


@kernel
def _ranked(P: Any, y: int, width: int, figures: Any) -> None:
    """:func:`labelmem.scoring.ranked` of one stream."""
    one, zero, width = np.float32(1.0), np.float32(0.0), min(width, len(P))
    known = 0 <= y < width
    p = P[y] if known else zero
    above, other = _above(P, p), _equal(P[:width], p) - (one if known else zero)
    first = known and above == 0 and _equal(P[:y], p) == 0
    figures[0], figures[1] = p, one + above + other / np.float32(2.0)
    figures[2], figures[3] = one if first else zero, largest(P)


@kernel
def _best(P: Any, labels: Any, probs: Any) -> None:
    """The most likely labels (k,), the first in front; of those that tie the one before."""
    last = len(probs) - 1
    fill(probs, np.float32(-1.0))
    for first in range(0, len(P), _BLOCK):
        end = min(first + _BLOCK, len(P))
        if largest(P[first:end]) <= probs[last]:
            continue
        for y in range(first, end):
            if P[y] <= probs[last]:
                continue
            at = last
            while at > 0 and probs[at - 1] < P[y]:
                probs[at], labels[at] = probs[at - 1], labels[at - 1]
                at -= 1
            probs[at], labels[at] = P[y], y


@kernel_of_rows
def worth_rows(
    first: int,
    end: int,
    of: Mixture,
    P: Any,
    y: Any,
    widths: Any,
    figures: Any,
    labels: Any,
    probs: Any,
) -> None:
    """What is asked of P (n, W), which has no rows where nobody has made them.

    ``figures`` (n, 4) of the labels y (n,) among the first ``widths`` (n,), and the most likely
    ``labels`` (n, k) with their ``probs``.
    """
    room = np.empty((3, P.shape[1]), np.float32)
    for i in range(first, end):
        mixed = room[2]
        if len(P):
            mixed = P[i]
        else:
            believe_and_mix(of, i, room[0], room[1], mixed)
        _ranked(mixed, y[i], widths[i], figures[i])
        if probs.shape[1]:
            _best(mixed, labels[i], probs[i])
