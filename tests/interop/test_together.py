"""The memory and its helpers: how they are pooled, and what is believed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from labelmem import MemoryConfig
from labelmem.errors import ConfigError
from labelmem.interop.together import TOGETHER, Alone, Together, lifted, without_a_model
from labelmem.interop.vectors import softmax


def events(seed: int, count: int, labels: int = 3) -> list[tuple[np.ndarray, int]]:
    rng = np.random.default_rng(seed)
    ys = [int(y) for y in rng.integers(labels, size=count)]
    return [(lifted(rng.normal(size=2) + 2 * np.array([y, -y]), 2), y) for y in ys]


def opinions_of(together: Together, h: np.ndarray) -> np.ndarray:
    return together.opinions(h, together.memory.look(h))


def slow_pool(belief: list[float], opinions: list[list[float]]) -> list[float]:
    """Products of powers, label by label."""
    weights = [
        math.prod(math.exp(log[y]) ** b for b, log in zip(belief, opinions, strict=True))
        for y in range(len(opinions[0]))
    ]
    return [w / sum(weights) for w in weights]


def test_probabilities_are_products_of_powers_of_the_opinions() -> None:
    together = Together(TOGETHER, 3, 50)
    for t, (h, y) in enumerate(events(0, 60)):
        if t:
            opinions = opinions_of(together, h)
            assert opinions.shape == (3, len(together.space))
            assert opinions.max(axis=1).tolist() == [0.0] * 3 and opinions.min() >= -6.0
            expected = slow_pool(together.belief.tolist(), opinions.tolist())
            assert together.read(h).tolist() == pytest.approx(expected)
        together.learn(h, y)


def test_opinions_are_those_of_the_three() -> None:
    together = Together(TOGETHER, 3, 50)
    for h, y in events(1, 40):
        together.learn(h, y)
    h = lifted(np.array([1.0, -1.0]), 2)
    s, votes = softmax(together.memory.look(h)[0]), together.recent.read(h, 3)
    scores = together.moments.scores(h)
    expected = [scores - scores.max(), np.log(s / s.max()), np.log(votes / votes.max())]
    np.testing.assert_allclose(opinions_of(together, h), np.maximum(expected, -6.0), atol=1e-9)


def test_belief_follows_the_gradient_of_the_likelihood() -> None:
    together = Together(TOGETHER, 3, 50)
    stream = events(2, 30)
    for h, y in stream:
        together.learn(h, y)
    h, y = stream[7]
    opinions, before = opinions_of(together, h).tolist(), together.belief.copy()
    index = together.space.names(3).index(y)
    step, slope = 1e-6, []
    for k in range(3):
        up, down = before.tolist(), before.tolist()
        up[k] += step
        down[k] -= step
        ahead, behind = (math.log(slow_pool(b, opinions)[index]) for b in (up, down))
        slope.append((ahead - behind) / (2 * step))
    together.learn(h, y)
    np.testing.assert_allclose(together.belief - before, 0.02 * np.array(slope), atol=1e-7)


def test_once_settled_one_event_in_eight_teaches_what_to_believe() -> None:
    together, changed = Together(TOGETHER, 3, 50), []
    for t, (h, y) in enumerate(events(3, 264)):
        before = together.belief.copy()
        together.learn(h, y)
        if t > 200 and (together.belief != before).any():
            changed.append(t)
    assert changed == [208, 216, 224, 232, 240, 248, 256]


def test_who_misleads_is_no_longer_believed() -> None:
    """Two labels on a chessboard: their means and variances are the same."""
    rng = np.random.default_rng(0)
    together, right = Together(TOGETHER, 3, 500), []
    for _ in range(800):
        x = rng.uniform(-2, 2, size=2)
        y = int(math.floor(x[0]) + math.floor(x[1])) % 2
        h = lifted(x, 2)
        P = dict(zip(together.space.names(2), together.read(h), strict=False))
        right.append(max(P, key=P.__getitem__, default=None) == y)
        together.learn(h, y)
    assert np.mean(right[400:]) > 0.85
    assert together.belief[0] < together.belief[2]
    assert (together.belief >= 0).all()


def test_the_memory_is_that_of_a_classifier_alone() -> None:
    together, alone = Together(TOGETHER, 3, 50), Alone(TOGETHER, 3)
    for h, y in events(4, 80):
        together.learn(h, y)
        alone.learn(h, y)
        np.testing.assert_array_equal(together.memory.look(h)[0], alone.scores(h))


def test_a_new_label_is_known_at_once_and_an_evicted_one_still() -> None:
    together = Together(MemoryConfig(capacity=1), 2, 10)
    assert together.read(np.ones(2)).shape == (0,)
    together.learn(np.array([0.7, 1.0]), "gone")
    assert together.read(np.ones(2)).tolist() == [1.0]
    together.learn(np.array([0.7, -1.0]), "here")
    P = together.read(np.array([0.7, 1.0]))
    assert together.space.names(2) == ["gone", "here"]
    assert P.sum() == pytest.approx(1.0) and (P > 0).all()


def test_widening_changes_no_answer_of_the_memory_and_of_the_last_events() -> None:
    together = Together(TOGETHER, 3, 50)
    for h, y in events(5, 40):
        together.learn(h, y)
    before = opinions_of(together, h)
    together.widen(5)
    after = opinions_of(together, np.append(h, [0.0, 0.0]))
    np.testing.assert_allclose(after[1:], before[1:], atol=1e-12)
    assert together.read(np.append(h, [0.0, 0.0])).sum() == pytest.approx(1.0)


def test_without_a_window_the_memory_is_all_there_is() -> None:
    assert type(without_a_model(None, 3, 0)) is Alone
    assert isinstance(without_a_model(None, 3, 1), Together)
    with pytest.raises(ConfigError, match="window is -1; expected"):
        without_a_model(None, 3, -1)
