"""The window against a list that is sorted anew for every question."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest

from labelmem.interop import recent as module
from labelmem.interop.recent import Recent

LABELS = 4


def slow_votes(kept: deque[tuple[list[float], int]], h: list[float]) -> list[float]:
    near = sorted((math.dist(other, h), y) for other, y in kept)[:5]
    votes = [0.0] * LABELS
    for distance, y in near:
        votes[y] += 1 / distance
    total, asked = sum(votes), len(near)
    return [(asked * v / total + 1 / LABELS) / (asked + 1) for v in votes]


@pytest.mark.parametrize("window", [1, 7, 100])
def test_the_nearest_of_the_last_events_vote(window: int) -> None:
    rng = np.random.default_rng(window)
    recent, kept = Recent(window, 3), deque[tuple[list[float], int]](maxlen=window)
    for _ in range(150):  # more than the widest window holds
        h, y = rng.normal(size=3), int(rng.integers(LABELS))
        recent.learn(h, y)
        kept.append((h.tolist(), y))
        probe = rng.normal(size=3)
        expected = slow_votes(kept, probe.tolist())
        assert recent.read(probe, LABELS).tolist() == pytest.approx(expected, rel=1e-6)
        assert len(recent) == len(kept)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_an_event_met_again_outvotes_all_others(scale: float) -> None:
    recent = Recent(50, 2)
    recent.learn(np.array([scale, 0.0]), 1)
    for i in range(1, 20):
        recent.learn(np.array([scale + i, 1.0]), 0)
    P = recent.read(np.array([scale, 0.0]), 2)
    assert P[1] > 0.9 and P.sum() == pytest.approx(1.0)


def test_what_is_kept_is_copied() -> None:
    recent, h = Recent(5, 2), np.array([1.0, 2.0])
    recent.learn(h, 0)
    recent.learn(np.array([-1.0, 0.0]), 1)
    before = recent.read(np.array([1.0, 1.0]), 2)
    h[:] = 9.0
    np.testing.assert_array_equal(recent.read(np.array([1.0, 1.0]), 2), before)


@pytest.mark.parametrize("events", [0, 3, 4, 9])
def test_widening_keeps_the_last_events_in_their_order(events: int) -> None:
    rng = np.random.default_rng(events)
    late, early = Recent(4, 2), Recent(4, 5)
    for t in range(events + 6):
        h = rng.normal(size=5)
        if t < events:
            h[2:] = 0.0
        if t == events:
            late.widen(5)
            late.widen(3)  # never narrower
        late.learn(h if t >= events else h[:2], t % LABELS)
        early.learn(h, t % LABELS)
        for probe in (h, -h):
            np.testing.assert_allclose(
                late.read(probe if t >= events else probe[:2], LABELS), early.read(probe, LABELS)
            )


def test_of_very_long_vectors_fewer_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROOM", 30)
    recent = Recent(10, 3)
    for t in range(13):
        recent.learn(np.full(3, float(t)), t % LABELS)
    assert len(recent) == 10
    recent.widen(15)
    assert len(recent) == 2 and recent.y.tolist() == [11 % LABELS, 12 % LABELS]
    recent.widen(100)  # longer than there is room for: the last one stays
    assert len(recent) == 1 and recent.y.tolist() == [12 % LABELS]
