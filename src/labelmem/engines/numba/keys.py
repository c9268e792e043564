"""Kernels of keys for one stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import dot, kernel

__all__ = ["scale", "token_key"]


@kernel
def scale(h: Any, length: float, out: Any) -> None:
    """A vector brought to a length, into ``out``; zero stays zero."""
    norm = np.float32(math.sqrt(dot(h, h)))
    factor = np.float32(length) / norm if norm > 0 else np.float32(0.0)
    for j in range(len(h)):
        out[j] = factor * h[j]


@kernel
def token_key(table: Any, now: int, before: Any, fade: float, pair: bool, key: Any) -> None:
    """Rows of the ``table`` into ``key`` (parts, d): that of ``now``, then those ``before``.

    A token below 0 has no row; ``fade`` multiplies each older one. With ``pair``, the direction of
    the product of the first two follows.
    """
    share, width = np.float32(1.0), table.shape[1]
    for i in range(len(before) + 1):
        token = now if i == 0 else before[i - 1]
        for j in range(width):
            key[i, j] = table[token, j] * share if token >= 0 else np.float32(0.0)
        share *= np.float32(fade)
    if pair:
        both = key[len(before) + 1]
        for j in range(width):
            both[j] = key[0, j] * key[1, j]
        scale(both, 1.0, both)
