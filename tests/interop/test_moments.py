"""Running moments against those of all events at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from labelmem.interop.moments import Moments


def slow_score(rows: list[list[float]], h: list[float], features: int) -> float:
    """The logarithm of count and density, feature by feature, from the whole past of one label."""
    total, ordinary = math.log(len(rows)), 1 / features
    for j in range(1, 1 + features):
        values = [row[j] for row in rows]
        mean = sum(values) / len(values)
        variance = (sum((v - mean) ** 2 for v in values) + ordinary) / (len(values) + 1)
        variance = max(variance, 0.1 * ordinary)
        total -= 0.5 * ((h[j] - mean) ** 2 / variance + math.log(variance))
    return total


@pytest.mark.parametrize("features", [1, 4])
def test_the_scores_are_those_of_the_whole_past(features: int) -> None:
    rng = np.random.default_rng(features)
    moments, past = Moments(1 + features), dict[int, list[list[float]]]()
    for t in range(60):
        y = min(int(rng.integers(4)), len(past))  # labels come in the order of their numbers
        h = np.append(0.7, rng.normal(size=features) + y)
        if t % 2:
            h[-1] = 0.0  # hardly any variance
        moments.learn(h, y)
        past.setdefault(y, []).append(h.tolist())
        expected = [slow_score(past[k], h.tolist(), features) for k in range(len(past))]
        np.testing.assert_allclose(moments.scores(h), expected, rtol=1e-9, atol=1e-9)


def test_a_feature_that_comes_late_was_zero_before() -> None:
    rng = np.random.default_rng(0)
    late, early = Moments(2), Moments(4)
    for t, x in enumerate(rng.normal(size=(20, 3))):
        if t < 10:
            x[1:] = 0.0
        elif t == 10:
            late.widen(4)
            late.widen(3)  # never narrower
        h = np.append(0.7, x)
        late.learn(h if t >= 10 else h[:2], t % 2)
        early.learn(h, t % 2)
    np.testing.assert_allclose(late.scores(h), early.scores(h), atol=1e-9)


def test_without_features_only_the_counts_speak() -> None:
    moments = Moments(1)
    for y in (0, 1, 1):
        moments.learn(np.array([0.7]), y)
    np.testing.assert_allclose(moments.scores(np.array([0.7])), np.log([1, 2]))
