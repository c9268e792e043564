"""Operations on events that are sorted by the sequence they belong to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["distinct_pairs", "offsets_of", "starts"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def starts(groups: Integers) -> Mask:
    """Mark the first event of each run of the same group."""
    first = np.ones(len(groups), np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=first[1:])
    return first


def distinct_pairs(groups: Integers, labels: Integers, many: int) -> Integers:
    """Count for each of ``many`` labels in how many groups it occurs."""
    pairs = np.unique(groups * many + labels)
    return np.bincount(pairs % many, minlength=many)


def offsets_of(groups: Integers) -> Integers:
    """Return where each run of a group starts, and the end of the last.

    Examples
    --------
    >>> offsets_of(np.array([4, 4, 9]))
    array([0, 2, 3])
    """
    return np.append(np.flatnonzero(starts(groups)), len(groups))
