"""Thin out events that are sorted by the sequence they belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.logs.grouping import distinct_pairs, starts

__all__ = ["Filters"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Filters:
    """Which events of which sequences are kept.

    The steps, in this order: merge repeats; drop rare labels, counted once on what the merging
    left; merge again what now stands side by side; drop sequences too short or too long.

    Examples
    --------
    >>> groups, labels = np.array([1, 1, 1, 1, 2]), np.array([3, 4, 3, 3, 3])
    >>> Filters(merge_repeats=True, min_count=2).apply(groups, labels)
    (array([1, 2]), array([3, 3]))
    """

    merge_repeats: bool = False
    min_count: int = 1
    min_groups: int = 1
    min_length: int = 1
    max_length: int | None = None

    def apply(self, groups: Integers, labels: Integers) -> tuple[Integers, Integers]:
        """Return the groups and labels of the events that are kept."""
        for step in (self._merge, self._drop_rare, self._merge, self._drop_lengths):
            kept = step(groups, labels)
            if not kept.all():
                groups, labels = groups[kept], labels[kept]
        return groups, labels

    def _merge(self, groups: Integers, labels: Integers) -> Mask:
        if not self.merge_repeats:
            return np.ones(len(groups), np.bool_)
        return starts(groups) | starts(labels)

    def _drop_rare(self, groups: Integers, labels: Integers) -> Mask:
        many = int(labels.max(initial=-1)) + 1
        enough = np.bincount(labels, minlength=many) >= self.min_count
        if self.min_groups > 1:
            enough &= distinct_pairs(groups, labels, many) >= self.min_groups
        return enough[labels]

    def _drop_lengths(self, groups: Integers, labels: Integers) -> Mask:
        owner = np.cumsum(starts(groups)) - 1
        lengths = np.bincount(owner)
        good = lengths >= self.min_length
        if self.max_length is not None:
            good &= lengths <= self.max_length
        return np.asarray(good[owner], np.bool_)
