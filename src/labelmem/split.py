"""Divide sequences into training, validation and test parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from labelmem.errors import ConfigError

__all__ = ["Part", "Split", "by_time", "by_user"]

Integers = npt.NDArray[np.int64]
Part = Literal["train", "valid", "test"]


@dataclass(frozen=True)
class Split:
    """Which sequences belong to which part: three index arrays without a common element."""

    train: Integers
    valid: Integers
    test: Integers

    def part(self, name: Part) -> Integers:
        """Return one part by its name."""
        if name not in ("train", "valid", "test"):
            raise ConfigError(f"part is {name!r}; it must be 'train', 'valid' or 'test'")
        indices: Integers = getattr(self, name)
        return indices


def by_user(users: Integers, *, test: float, valid: float, seed: int) -> Split:
    """Shuffle the users and deal them out whole, so that no user is in two parts.

    Users are taken in their shuffled order into the test part as long as they fit; where every
    user has one sequence this is a plain shuffled cut, and where some have several it still
    comes as close to the wanted number of sequences as whole users allow.

    Parameters
    ----------
    users : the user of each sequence.
    test : share of the sequences to test on.
    valid : share of the others to validate on.
    seed : of the shuffle.

    Examples
    --------
    >>> split = by_user(np.arange(10), test=0.2, valid=0.25, seed=0)
    >>> [len(split.part(name)) for name in ("train", "valid", "test")]
    [6, 2, 2]
    """
    distinct, owner = np.unique(users, return_inverse=True)
    sizes = np.bincount(owner, minlength=len(distinct))
    order = np.random.default_rng(seed).permutation(len(distinct))
    tested = _take(order, sizes, round(test * len(users)))
    rest = order[~np.isin(order, tested)]
    validated = _take(rest, sizes, round(valid * int(sizes[rest].sum())))
    in_test, in_valid = np.isin(owner, tested), np.isin(owner, validated)
    return Split(*(np.flatnonzero(m) for m in (~in_test & ~in_valid, in_valid, in_test)))


def by_time(sequences: int, *, test: float, valid: float) -> Split:
    """Cut sequences that stand in time order: the last are for testing.

    The validation part is the end of what comes before the test part, so that validating looks
    ahead in the same way as testing does.

    Examples
    --------
    >>> by_time(10, test=0.2, valid=0.25).valid
    array([6, 7])
    """
    before = sequences - round(test * sequences)
    first = before - round(valid * before)
    return Split(np.arange(first), np.arange(first, before), np.arange(before, sequences))


def _take(order: Integers, sizes: Integers, wanted: int) -> Integers:
    taken, total = [], 0
    for user in order.tolist():
        if total + sizes[user] <= wanted:
            taken.append(user)
            total += int(sizes[user])
    return np.array(taken, np.int64)
