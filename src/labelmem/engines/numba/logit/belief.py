"""What a prediction leaves behind for its label: one array, and where in it everything lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import part
from labelmem.fast import Array

__all__ = ["features_of", "lay_out", "piece", "piece_of", "room_of"]

CANDIDATES, CHOSEN, LABELS, LOG_SUM, REST, PEAK, SURE, PLACED = range(8)
"""Numbers at the beginning; ``SURE`` comes with the label."""
_STARTS = 8
THETA, LISTED, VALUE, PLACE, ACROSS, NEAR, MEANS, LABEL, OFFSET, SCORES, FEATURES = range(11)
"""Parts: candidates and their features have room for as many as there can be."""
_HEAD = _STARTS + 12


def room_of(k: int, listed: int, d: int, cells: int, slots: int) -> int:
    """How many numbers it takes."""
    return _HEAD + k + 2 * listed + 2 * d + cells + slots + (3 + k) * (slots + listed + 1)


def piece_of(room: Array, which: int) -> Array:
    """:func:`piece` for who is not compiled."""
    return room[int(room[_STARTS + which]) : int(room[_STARTS + which + 1])]


@part
def lay_out(room: Any, k: int, listed: int, d: int, cells: int, slots: int) -> None:
    """Note where the parts begin."""
    most, start = slots + listed + 1, _HEAD
    sizes = (k, listed, listed, d, d, cells, slots, most, most, most, k * most)
    for i in range(11):
        room[_STARTS + i] = start
        start += sizes[i]
    room[_STARTS + 11] = start


@part
def piece(room: Any, which: int) -> Any:
    """One of the parts."""
    return room[np.int64(room[_STARTS + which]) : np.int64(room[_STARTS + which + 1])]


@part
def features_of(room: Any, k: int) -> Any:
    """(k, C) features of the candidates there are."""
    n, start = np.int64(room[CANDIDATES]), np.int64(room[_STARTS + FEATURES])
    return room[start : start + k * n].reshape((k, n))
