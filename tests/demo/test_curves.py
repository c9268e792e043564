from __future__ import annotations

import math

import numpy as np
import pytest

from labelmem.demo.curves import by_meeting, by_position, difference
from labelmem.demo.trace import Trace


def made_up(seed: int, users: int = 30, known: int = 5) -> Trace:
    """Streams of unequal length with random hits."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 25, size=users)
    trace = Trace([(None, [0] * int(length)) for length in lengths], known)
    for user, length in enumerate(lengths):
        trace.label[user, :length] = rng.integers(9, size=length)
        trace.new[user, :length] = trace.label[user, :length] >= known
        trace.hit[user, :length] = rng.random(length) < 0.4
    return trace


def test_accuracy_by_position() -> None:
    trace = made_up(0)
    x, y = by_position(trace, bins=3)
    there = [t for t in range(trace.hit.shape[1]) if (~np.isnan(trace.hit[:, t])).mean() >= 0.5]
    first = [trace.hit[u, t] for t in there[: len(there) // 3] for u in range(30)]
    expected = np.mean([hit for hit in first if not math.isnan(hit)])
    if len(there) % 3 == 0:
        assert y[0] == pytest.approx(expected)
    assert len(x) == len(y) == 3 and x[0] >= 1 and x[-1] <= len(there)


def test_accuracy_by_meeting_counts_earlier_examples() -> None:
    trace = made_up(1, users=60)
    tally: dict[int, list[float]] = {}
    for labels, hits in zip(trace.label, trace.hit, strict=True):
        met: dict[float, int] = {}
        for label, hit in zip(labels, hits, strict=True):
            if math.isnan(label):
                break
            if label >= trace.known:
                tally.setdefault(met.get(label, 0), []).append(hit)
            met[label] = met.get(label, 0) + 1
    x, y = by_meeting(trace, most=4)
    enough = [n for n in range(4) if len(tally.get(n, [])) >= 10]
    assert x == enough
    assert y == pytest.approx([np.mean(tally[n]) for n in enough])


@pytest.mark.parametrize("new", [True, False])
def test_difference_pairs_the_users(new: bool) -> None:
    ours, theirs = made_up(4), made_up(4)
    rng = np.random.default_rng(9)
    theirs.hit[~np.isnan(theirs.hit)] = rng.random((~np.isnan(theirs.hit)).sum()) < 0.4
    there = ours.new == float(new)
    gap = difference(ours, theirs, new)
    assert gap.value == pytest.approx(ours.hit[there].mean() - theirs.hit[there].mean())
    assert gap.low < gap.value < gap.high


def test_a_method_does_not_differ_from_itself() -> None:
    gap = difference(made_up(5), made_up(5), new=False)
    assert (gap.value, gap.low, gap.high) == (0, 0, 0)


def test_without_new_labels_there_is_no_difference() -> None:
    trace = made_up(6, known=99)
    assert math.isnan(difference(trace, trace, new=True).value)
