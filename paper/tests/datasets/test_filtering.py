from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelmem_paper.datasets.filtering import Filters
from labelmem_paper.datasets.numbering import number, renumber

Events = list[tuple[int, int]]


def slow(events: Events, filters: Filters) -> Events:
    """The same steps by plain loops."""

    def merged(events: Events) -> Events:
        return [key for key, _ in groupby(events)] if filters.merge_repeats else events

    events = merged(events)
    counts: dict[int, int] = {}
    owners: dict[int, set[int]] = {}
    for group, label in events:
        counts[label] = counts.get(label, 0) + 1
        owners.setdefault(label, set()).add(group)
    events = [
        (group, label)
        for group, label in events
        if counts[label] >= filters.min_count and len(owners[label]) >= filters.min_groups
    ]
    events = merged(events)
    result: Events = []
    for _, part in groupby(events, key=lambda event: event[0]):
        sequence = list(part)
        longest = filters.max_length or len(sequence)
        if filters.min_length <= len(sequence) <= longest:
            result += sequence
    return result


events = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=60).map(
    lambda found: sorted(found, key=lambda event: event[0])
)
filters = st.builds(
    Filters,
    merge_repeats=st.booleans(),
    min_count=st.integers(1, 4),
    min_groups=st.integers(1, 3),
    min_length=st.integers(1, 4),
    max_length=st.one_of(st.none(), st.integers(4, 9)),
)


@given(events, filters)
def test_equals_the_slow_way(found: Events, options: Filters) -> None:
    groups = np.array([group for group, _ in found], np.int64)
    labels = np.array([label for _, label in found], np.int64)
    kept_groups, kept_labels = options.apply(groups, labels)
    assert list(zip(kept_groups.tolist(), kept_labels.tolist(), strict=True)) == slow(
        found, options
    )


@given(st.lists(st.integers(0, 30), min_size=1))
def test_renumbering_keeps_which_are_equal_and_closes_gaps(labels: list[int]) -> None:
    new, old = renumber(np.array(labels))
    assert old[new].tolist() == labels
    assert sorted(set(new.tolist())) == list(range(len(set(labels))))


@pytest.mark.parametrize("dtype", ["S3", np.int64])
def test_numbering_can_be_undone(dtype: str) -> None:
    keys = np.array([7, 3, 7, 100]).astype(dtype)
    numbers, distinct = number(keys)
    assert (distinct[numbers] == keys).all()
