"""Kernels that read one stream's cells, one of them for each label: Eq. 2 and 3.

Cells ``v`` are (K, d) of 32 bits, or (K, d + 2) of 16 as :mod:`labelmem.narrow` has them. Cosines
need no unit: it is the same in a cell's product with h and in its length.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import exp, inlined, kernel, largest, log
from labelmem.engines.numba.bytes import vector_at

__all__ = ["TINY", "direction", "measure", "normalise", "products", "read_lone", "read_parts"]
__all__ += ["read_at", "unit_of"]

TINY = np.float32(np.finfo(np.float32).tiny)
"""The smallest ordinary number."""


@inlined
def unit_of(v: Any, cell: int, dim: int) -> np.float32:
    """What one means in a cell: 1, but for cells of 16 bits."""
    if v.shape[1] == dim:
        return np.float32(1.0)
    low, high = np.int32(v[cell, dim]) & np.int32(0xFFFF), np.int32(v[cell, dim + 1])
    return np.int32((high << np.int32(16)) | low).view(np.float32)


@inlined
def _square(x: Any) -> np.float32:
    square = np.float32(0.0)
    for j in range(len(x)):
        square += np.float32(x[j]) * np.float32(x[j])
    return square


@kernel
def measure(v: Any, alpha: Any, bounds: Any, first: int, end: int, known: Any, size: Any) -> None:
    """Find what reads need of the cells at the positions from ``first`` up to ``end``.

    ``known`` (2, K) gets one over the cell's length, in its own units, and the logarithm of its
    weight, ``size`` (K, B) the lengths of its parts, which lie between ``bounds`` (B + 1,), unless
    it is empty.
    """
    for cell in range(first, end):
        whole, unit = np.float32(0.0), unit_of(v, cell, bounds[-1])
        for part in range(len(bounds) - 1):
            square = _square(v[cell, bounds[part] : bounds[part + 1]])
            if len(size):
                size[cell, part] = np.float32(math.sqrt(square)) * unit
            whole += square
        # The product with a zero cell is zero, and so is its cosine, whatever this is.
        known[0, cell] = np.float32(1.0) / max(np.float32(math.sqrt(whole)), TINY)
        known[1, cell] = log(max(alpha[cell], TINY))


@inlined
def _length(h: Any) -> np.float32:
    return np.float32(math.sqrt(_square(h)))


@inlined
def direction(h: Any) -> Any:
    """The same vector at length one; zero stays zero."""
    length, unit = _length(h), np.empty(len(h), np.float32)
    for j in range(len(h)):
        unit[j] = h[j] / length if length > 0 else h[j]
    return unit


@inlined
def products(v: Any, unit: Any, product: Any) -> None:
    """Of the first k cells with a vector (d,), in the cells' units: (k,)."""
    for i in range(len(product)):
        found = np.float32(0.0)
        for j in range(len(unit)):
            found += np.float32(v[i, j]) * unit[j]
        product[i] = found


@inlined
def normalise(score: Any) -> None:
    """Softmax, in place.

    One array, not the same one twice: of two that overlap, a loop takes one number at a time.
    """
    top, whole = largest(score), np.float32(0.0)
    for i in range(len(score)):
        score[i] = exp(score[i] - top)
    for i in range(len(score)):
        whole += score[i]
    inverse = np.float32(1.0) / whole
    for i in range(len(score)):
        score[i] *= inverse


@kernel
def read_lone(
    v: Any, known: Any, h: Any, lam: float, delta: float, cosine: Any, score: Any
) -> None:
    """The cosines (k,) of the first k cells with ``h`` (d,), and the labels' scores (k,)."""
    lam32, delta32 = np.float32(lam), np.float32(delta)
    products(v, direction(h), cosine)
    for i in range(len(score)):
        cosine[i] *= known[0, i]
    for i in range(len(score)):
        score[i] = lam32 * cosine[i] + delta32 * known[1, i]
    normalise(score)


@kernel
def read_at(
    v: Any, known: Any, address: int, dim: int, lam: float, delta: float, seen: Any
) -> None:
    """The same for the ``h`` (d,) that lies at an address; cosines and scores are ``seen`` (2, k).

    Fewer and smaller things to hand over: that takes as long as reading a hundred cells.
    """
    read_lone(v, known, vector_at(address, dim), lam, delta, seen[0], seen[1])


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
    length, lam32, delta32 = _length(h), np.float32(lam), np.float32(delta)
    own = np.empty(count, np.float32)
    for part in range(count):
        own[part] = _length(h[bounds[part] : bounds[part + 1]])
    inverse = np.float32(1.0) / length if length > 0 else np.float32(1.0)
    for i in range(len(score)):
        whole, one = np.float32(0.0), unit_of(v, i, len(h))
        for part in range(count):
            # Views, not places: of these it is known that none is counted from the end.
            there, here = v[i, bounds[part] : bounds[part + 1]], h[bounds[part] : bounds[part + 1]]
            product = np.float32(0.0)
            for j in range(len(here)):
                product += np.float32(there[j]) * here[j]
            whole += product * inverse
            both = size[i, part] * own[part]
            parts[i, part] = one * product / both if both > 0 else np.float32(0.0)
        cosine[i] = whole * known[0, i]
    for i in range(len(score)):
        score[i] = lam32 * cosine[i] + delta32 * known[1, i]
    normalise(score)
