"""Kernels that read one stream's cells, one of them for each label: Eq. 2 and 3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import kernel, log, softmax

__all__ = ["TINY", "measure", "read_lone", "read_parts"]

TINY = np.float32(np.finfo(np.float32).tiny)
"""The smallest ordinary number."""


@kernel
def measure(v: Any, alpha: Any, bounds: Any, first: int, end: int, known: Any, size: Any) -> None:
    """Find what reads need of the cells at the positions from ``first`` up to ``end``.

    ``known`` (2, K) gets one over the cell's length and the logarithm of its weight, ``size``
    (K, B) the lengths of its parts, which lie between ``bounds`` (B + 1,), unless it is empty.
    """
    for cell in range(first, end):
        whole = np.float32(0.0)
        for part in range(len(bounds) - 1):
            square = np.float32(0.0)
            for j in range(bounds[part], bounds[part + 1]):
                square += v[cell, j] * v[cell, j]
            if len(size):
                size[cell, part] = np.float32(math.sqrt(square))
            whole += square
        # The product with a zero cell is zero, and so is its cosine, whatever this is.
        known[0, cell] = np.float32(1.0) / max(np.float32(math.sqrt(whole)), TINY)
        known[1, cell] = log(max(alpha[cell], TINY))


@kernel
def _length(h: Any, first: int, end: int) -> np.float32:
    square = np.float32(0.0)
    for j in range(first, end):
        square += h[j] * h[j]
    return np.float32(math.sqrt(square))


@kernel
def read_lone(
    v: Any, known: Any, h: Any, lam: float, delta: float, cosine: Any, score: Any
) -> None:
    """The cosines (k,) of the first k cells with ``h`` (d,), and the labels' scores (k,)."""
    length = _length(h, 0, len(h))
    unit, lam32, delta32 = np.empty(len(h), np.float32), np.float32(lam), np.float32(delta)
    for j in range(len(h)):
        unit[j] = h[j] / length if length > 0 else h[j]
    for i in range(len(score)):
        product = np.float32(0.0)
        for j in range(len(unit)):
            product += v[i, j] * unit[j]
        cosine[i] = product * known[0, i]
    for i in range(len(score)):
        score[i] = lam32 * cosine[i] + delta32 * known[1, i]
    if len(score):
        softmax(score, score)


@kernel
def read_parts(
    v: Any,
    known: Any,
    size: Any,
    bounds: Any,
    h: Any,
    lam: float,
    delta: float,
    cosine: Any,
    parts: Any,
    score: Any,
) -> None:
    """The same with a cosine of each part of ``h`` with that of the cell, ``parts`` (k, B)."""
    count = len(bounds) - 1
    length, lam32, delta32 = _length(h, 0, len(h)), np.float32(lam), np.float32(delta)
    own = np.empty(count, np.float32)
    for part in range(count):
        own[part] = _length(h, bounds[part], bounds[part + 1])
    inverse = np.float32(1.0) / length if length > 0 else np.float32(1.0)
    for i in range(len(score)):
        whole = np.float32(0.0)
        for part in range(count):
            product = np.float32(0.0)
            for j in range(bounds[part], bounds[part + 1]):
                product += v[i, j] * h[j]
            whole += product * inverse
            both = size[i, part] * own[part]
            parts[i, part] = product / both if both > 0 else np.float32(0.0)
        cosine[i] = whole * known[0, i]
    for i in range(len(score)):
        score[i] = lam32 * cosine[i] + delta32 * known[1, i]
    if len(score):
        softmax(score, score)
