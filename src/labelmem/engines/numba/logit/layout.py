"""Where a user's numbers lie: arrays with room to grow, handed to kernels by their addresses.

A kernel is given one table ``t`` of whole numbers: address, rows and columns of each array, and how
many there are of everything. To hand over three dozen arrays takes longer than to read them, and
each function that is given them takes longer to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import numba, part
from labelmem.engines.numba.bytes import pointer_to

__all__ = ["double", "double_rows", "single", "single_rows", "whole", "whole_rows"]

# fmt: off
(
    # How many there are; NEW are slots of labels that the model does not know. STALE: what follows
    # from other numbers must be made anew.
    DIM, KNOWN, SLOTS, NEW, CELLS, PAIRS, ANSWERS, STALE,
    # What is constant for a user.
    OPTIONS, START, PRIOR,
    # The numbers of the user, of the statistics, of caution and of the weights.
    NUMBERS, TALLY, NATS, THETA, HELD,
    # Statistics of all keys; of the scatter and of R the part above the diagonal counts.
    MEAN, ORIGIN, SCATTER, ROOT,
    # For each slot; the last four, and the table of labels, follow from the others.
    LABEL, COUNT, SQUARE, SUMS, ROWS, CENTRED, PULL, LOG_COUNT, IS_NEW, TABLE,
    # For each cell; the last three follow from the others.
    KEY, PLACE, SLOT, ABOUT, VOTE, LISTED, VALUE, REST, TOTAL, ACROSS, CROSSED, LENGTH,
    # For each pair of an answer of the model and a slot whose label was true then; the first is
    # for each answer. The last three, and the table of answers, follow from the others.
    ANSWER, PAIR_OF, PAIR_SLOT, OFTEN, NEXT, FIRST, LAST, ANSWER_TABLE,
    END,
) = range(51)

(
    GATE, FORGET, STRENGTH, SHARPNESS, REVISITS, RATE, KEPT, CERTAINTY, PSEUDO_COUNT, ROW, NOISE,
    BELIEVED, HARM, CAPACITY,
) = range(14)
# fmt: on

_carray: Any = getattr(numba, "carray", None)


@part
def whole(place: Any) -> Any:
    """The array of whole numbers (rows,) whose row of the table this is."""
    return _carray(pointer_to(place[0]), (place[1],), np.int64)


@part
def whole_rows(place: Any) -> Any:
    """The same (rows, columns)."""
    return _carray(pointer_to(place[0]), (place[1], place[2]), np.int64)


@part
def single(place: Any) -> Any:
    """The array of numbers of 32 bits (rows,)."""
    return _carray(pointer_to(place[0]), (place[1],), np.float32)


@part
def single_rows(place: Any) -> Any:
    """The same (rows, columns)."""
    return _carray(pointer_to(place[0]), (place[1], place[2]), np.float32)


@part
def double(place: Any) -> Any:
    """The array of numbers of 64 bits (rows,)."""
    return _carray(pointer_to(place[0]), (place[1],), np.float64)


@part
def double_rows(place: Any) -> Any:
    """The same (rows, columns)."""
    return _carray(pointer_to(place[0]), (place[1], place[2]), np.float64)
