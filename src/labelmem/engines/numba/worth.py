"""Kernels for what many streams' predictions are worth, without rows of all labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import fill, inlined, kernel, kernel_of_rows, largest
from labelmem.engines.numba.rows import Mixture, believe_and_mix

__all__ = ["worth_rows"]

_BLOCK = 128  # labels that are passed over at once where none is among the best


@inlined
def _above_and_equal(P: Any, p: np.float32) -> tuple[np.float32, np.float32]:
    """How many are above p and equal: counted in floats, exact up to 16 million labels."""
    above, equal = np.float32(0.0), np.float32(0.0)
    for i in range(len(P)):
        above += np.float32(P[i] > p)
        equal += np.float32(P[i] == p)
    return above, equal


@kernel
def _ranked(P: Any, y: int, width: int, figures: Any) -> None:
    """:func:`labelmem.scoring.ranked` of one stream."""
    one, zero, width = np.float32(1.0), np.float32(0.0), min(width, len(P))
    known = 0 <= y < width
    p = P[y] if known else zero
    above, equal = _above_and_equal(P[:width], p)  # behind them there are zeros, above nothing
    first = known and above == 0 and _above_and_equal(P[:y], p)[1] == 0
    other = equal - one if known else equal
    figures[0], figures[1] = p, one + above + other / np.float32(2.0)
    figures[2], figures[3] = one if first else zero, largest(P)


@inlined
def _insert_all(values: Any, first: int, labels: Any, probs: Any) -> None:
    """Put values of labels from ``first`` on among the best, behind those that tie with them."""
    last = len(probs) - 1
    least = probs[last]
    for i in range(len(values)):
        if values[i] <= least:
            continue
        at = last
        while at > 0 and probs[at - 1] < values[i]:
            probs[at], labels[at] = probs[at - 1], labels[at - 1]
            at -= 1
        probs[at], labels[at] = values[i], first + i
        least = probs[last]


@kernel
def _best(P: Any, labels: Any, probs: Any) -> None:
    """The most likely labels (k,), the first in front; of those that tie the one before."""
    none, bits = np.float32(-1.0), P.view(np.int32)
    tops = np.empty((len(P) + _BLOCK - 1) // _BLOCK, np.float32)
    # Numbers from 0 have the order of their bits, and of these a maximum is taken on many lanes.
    for block in range(len(tops)):
        top, part = np.int32(0), bits[block * _BLOCK : (block + 1) * _BLOCK]
        for y in range(len(part)):
            top = max(top, part[y])
        tops[block] = np.int32(top).view(np.float32)
    # Of the k best blocks each has a label that is no worse than the last of these.
    fill(probs, none)
    _insert_all(tops, 0, labels, probs)
    least = probs[len(probs) - 1]
    fill(probs, none)
    for block in range(len(tops)):
        if tops[block] >= least:
            part = P[block * _BLOCK : (block + 1) * _BLOCK]
            _insert_all(part, block * _BLOCK, labels, probs)


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
