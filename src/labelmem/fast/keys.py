"""Keys of one stream on a CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.fast import Array

__all__ = ["scaled", "token_directions"]


def scaled(h: Array, length: float) -> Array:
    """A vector (d,) brought to a length; zero stays zero.

    Examples
    --------
    >>> scaled(np.array([3.0, 4.0]), 0.5), scaled(np.zeros(2), 0.5)
    (array([0.3, 0.4]), array([0., 0.]))
    """
    norm = math.sqrt(h @ h)
    made: Array = h * h.dtype.type(length / norm if norm > 0 else 0.0)
    return made


def token_directions(
    table: Array, tokens: Array, fade: float, pair: bool, kind: np.dtype[Any] | None = None
) -> Array:
    """Rows of the ``table`` end to end, each older one times ``fade``; none for a token below 0.

    With ``pair``, the direction of the product of the first two follows. ``kind`` is that of the
    result, the table's if None.

    Examples
    --------
    >>> table = np.eye(2) + 1
    >>> token_directions(table, np.array([1, 0]), fade=0.5, pair=False)
    array([1. , 2. , 1. , 0.5])
    >>> token_directions(table, np.array([1, -1]), fade=0.5, pair=True)
    array([1., 2., 0., 0., 0., 0.])
    """
    last, dim = len(tokens), table.shape[1]
    key = np.empty((last + pair, dim), kind or table.dtype)
    for i, token in enumerate(tokens):
        key[i] = table[token] if token >= 0 else 0
    if pair:
        key[last] = scaled(key[0] * key[1], 1.0)
    if fade != 1:
        for i in range(1, last):
            key[i] *= fade**i
    return key.ravel()
