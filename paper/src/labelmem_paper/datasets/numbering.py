"""Give every distinct label a number from 0."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["number", "renumber"]

Integers = npt.NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)


def number(keys: npt.NDArray[Scalar]) -> tuple[Integers, npt.NDArray[Scalar]]:
    """Replace each key by its rank among the distinct keys.

    Returns
    -------
    The numbers, and the distinct keys in order: ``distinct[numbers]`` is ``keys`` again.

    Examples
    --------
    >>> number(np.array(["c", "a", "c"]))
    (array([1, 0, 1]), array(['a', 'c'], dtype='<U1'))
    """
    distinct, numbers = np.unique(keys, return_inverse=True)
    return numbers.astype(np.int64, copy=False), distinct


def renumber(numbers: Integers) -> tuple[Integers, Integers]:
    """Close the gaps that filtering left among small numbers.

    Returns
    -------
    The new numbers, and for each of them the old one.

    Examples
    --------
    >>> renumber(np.array([4, 1, 4]))
    (array([1, 0, 1]), array([1, 4]))
    """
    used = np.flatnonzero(np.bincount(numbers))
    new = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int64)
    new[used] = np.arange(len(used))
    return new[numbers], used
