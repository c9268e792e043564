"""Where a user's numbers lie: arrays with room to grow, handed to kernels by their addresses.

A kernel is given one array of whole numbers: how many there are of everything, then an address for
each array. To hand over three dozen arrays would take longer than to read them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import kernel, numba
from labelmem.engines.numba.bytes import pointer_to

__all__ = [
    "ANSWERS",
    "CELLS",
    "COUNTS",
    "DIM",
    "FEATURES",
    "KNOWN",
    "LISTED",
    "NEW",
    "PAIRS",
    "ROOM",
    "SLOTS",
    "STALE",
    "VOTES",
    "Constants",
    "Memory",
    "constants_at",
    "memory_at",
]

DIM, LISTED, VOTES, FEATURES, KNOWN = 0, 1, 2, 3, 4
SLOTS, NEW, CELLS, PAIRS, ANSWERS = 5, 6, 7, 8, 9
"""How many there are now; ``NEW`` are the slots of labels that the model does not know."""
STALE = 10
"""Whether what follows from other numbers must be made anew."""
ROOM = 11
"""Then for how many slots, cells and pairs there is room, and the sizes of two tables."""
COUNTS = 16
"""Then the addresses, in the order of :class:`Memory`."""

_carray: Any = getattr(numba, "carray", None)


class Constants(NamedTuple):
    """The constants of the form; compiled code reads them, so that it holds for all of them."""

    gate: Any
    forget: Any
    strength: Any
    sharpness: Any
    revisits: Any
    rate: Any
    kept: Any
    certainty: Any
    pseudo_count: Any
    row: Any
    noise: Any
    believed: Any
    harm: Any
    capacity: Any
    clear: Any
    half: Any
    mix: Any
    pull: Any
    said: Any
    least_noise: Any
    most_noise: Any
    early: Any
    doubted: Any
    relied: Any
    steepest: Any
    kappa_kept: Any
    most_caution: Any
    clearly: Any
    may_swap: Any
    relief: Any
    wrong: Any
    soft: Any
    even: Any


class Memory(NamedTuple):
    """All that a user remembers, and below each part what follows from it."""

    counts: Any
    constants: Any
    # The numbers of the user, the statistics, caution and the weights.
    numbers: Any
    tally: Any
    nats: Any
    theta: Any
    held: Any
    start: Any
    prior: Any
    # Statistics of all keys; of the scatter and of R the part above the diagonal.
    mean: Any
    origin: Any
    scatter: Any
    root: Any
    # Slots.
    label: Any
    count: Any
    square: Any
    sums: Any
    rows: Any
    centred: Any
    pull: Any
    log_count: Any
    is_new: Any
    table: Any
    # Cells.
    key: Any
    place: Any
    slot: Any
    about: Any
    vote: Any
    listed: Any
    value: Any
    rest: Any
    total: Any
    across: Any
    crossed: Any
    length: Any
    # Pairs of an answer of the model and a label that was true then.
    answer: Any
    pair_of: Any
    pair_slot: Any
    often: Any
    next: Any
    first: Any
    last: Any
    answers: Any


@kernel
def _whole(address: int, rows: int) -> Any:
    return _carray(pointer_to(address), (rows,), np.int64)


@kernel
def _whole_matrix(address: int, rows: int, columns: int) -> Any:
    return _carray(pointer_to(address), (rows, columns), np.int64)


@kernel
def _single(address: int, rows: int) -> Any:
    return _carray(pointer_to(address), (rows,), np.float32)


@kernel
def _single_matrix(address: int, rows: int, columns: int) -> Any:
    return _carray(pointer_to(address), (rows, columns), np.float32)


@kernel
def _double(address: int, rows: int) -> Any:
    return _carray(pointer_to(address), (rows,), np.float64)


@kernel
def _double_matrix(address: int, rows: int, columns: int) -> Any:
    return _carray(pointer_to(address), (rows, columns), np.float64)


# fmt: off
@kernel
def constants_at(v: Any) -> Any:
    """The constants by name."""
    return Constants(
        v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13],
        v[14], v[15], v[16], v[17], v[18], v[19], v[20], v[21], v[22], v[23], v[24], v[25], v[26],
        v[27], v[28], v[29], v[30], v[31], v[32],
    )


@kernel
def memory_at(t: Any) -> Any:
    """The arrays by name, from the table that leads to them."""
    d, listed, votes, k = t[0], t[1], t[2], t[3]
    slots, cells, pairs, labels, answers, a = t[11], t[12], t[13], t[14], t[15], t[16:]
    return Memory(
        t, _double(a[1], 33),
        _double(a[2], 7), _double(a[3], 6), _double(a[4], 2),
        _double(a[5], k), _double_matrix(a[6], k, k), _double(a[7], k), _double_matrix(a[8], k, k),
        _double(a[9], d), _double(a[10], d),
        _double_matrix(a[11], d, d), _double_matrix(a[12], d, d),
        _whole(a[13], slots), _double(a[14], slots), _double(a[15], slots),
        _double_matrix(a[16], slots, d), _double_matrix(a[17], slots, d),
        _double_matrix(a[18], slots, d), _double(a[19], slots),
        _single(a[20], slots), _single(a[21], slots), _whole(a[22], labels),
        _single_matrix(a[23], cells, d), _single_matrix(a[24], cells, d), _whole(a[25], cells),
        _whole_matrix(a[26], cells, votes), _single_matrix(a[27], cells, votes),
        _whole_matrix(a[28], cells, listed), _single_matrix(a[29], cells, listed),
        _single(a[30], cells), _single(a[31], cells),
        _double_matrix(a[32], cells, d), _whole(a[33], cells), _single(a[34], cells),
        _whole(a[35], pairs), _whole(a[36], pairs), _whole(a[37], pairs),
        _double(a[38], pairs), _whole(a[39], pairs), _whole(a[40], pairs), _whole(a[41], pairs),
        _whole(a[42], answers),
    )
# fmt: on
