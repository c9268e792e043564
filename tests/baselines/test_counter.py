"""The per-user counter against a dictionary."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from toys import random_stream, run

from labelmem.baselines.counter import Counter, CounterOptions
from labelmem.errors import ConfigError

KNOWN, NEW = list("abcdef"), ["new-1", "new-2"]
TRAINING = [(None, list("aabacb"))]
UNIGRAM = {"a": 4 / 12, "b": 3 / 12, "c": 2 / 12, "d": 1 / 12, "e": 1 / 12, "f": 1 / 12}


def oracle(ys: list[Any], options: CounterOptions) -> list[dict[Any, float]]:
    counts: dict[Any, float] = {}
    answers = []
    for y in ys:
        total = sum(c**options.power for c in counts.values())
        theta = options.theta if counts else 0.0
        answers.append(
            {
                label: (1 - theta) * UNIGRAM.get(label, 0.0)
                + (theta * counts[label] ** options.power / total if label in counts else 0.0)
                for label in {*UNIGRAM, *counts}
            }
        )
        counts = {label: options.decay * c for label, c in counts.items()}
        counts[y] = counts.get(y, 0.0) + 1
    return answers


@pytest.mark.parametrize(
    "options",
    [
        CounterOptions(),
        CounterOptions(theta=0.9, decay=0.5, power=0.7),
        CounterOptions(theta=0.3, decay=1.0, power=2.0),
        CounterOptions(theta=0.6, decay=0.8, power=0.0),
        CounterOptions(theta=0.0),
        CounterOptions(theta=1.0),
    ],
)
def test_it_counts_as_the_dictionary_does(options: CounterOptions) -> None:
    x, ys = random_stream(3, 60, KNOWN, NEW)
    stream = Counter(KNOWN, options).fit(TRAINING).stream()
    for t, expected in enumerate(oracle(ys, options)):
        p = stream.predict(x[t])
        for label, probability in zip(p.labels, p.probs.tolist(), strict=True):
            assert probability == pytest.approx(expected.get(label, 0.0), abs=1e-6)
        stream.observe(ys[t])


def test_the_latest_habit_wins() -> None:
    old, new = ["a"] * 10 + ["b"] * 3, ["a"] * 10
    for decay, label in ((1.0, "a"), (0.5, "b")):
        stream = Counter(KNOWN, CounterOptions(decay=decay)).stream()
        run(stream, torch.zeros(13), old)
        assert stream.predict(0).label == label
        run(stream, torch.zeros(10), new)
        assert stream.predict(0).label == "a"


def test_it_stays_sound_when_old_counts_have_faded_to_nothing() -> None:
    stream = Counter(KNOWN, CounterOptions(decay=0.1, power=0.0)).stream()
    run(stream, torch.zeros(201), ["a"] + ["b"] * 200)
    p = stream.predict(0)
    assert p.probs.sum() == pytest.approx(1, abs=1e-6)
    assert p.probs[0] == pytest.approx(float(p.probs[1]), abs=1e-6)  # power 0: seen is seen


def test_state_grows_with_the_labels_met_not_with_those_there_are() -> None:
    batch = Counter(40_000).streams(3)
    for y in (5, 39_999, 5):
        batch.predict(torch.zeros(3))
        batch.observe([y] * 3)
    assert sum(t.numel() for t in batch.tensors().values()) == 3 * 2 * 2


def test_without_known_labels_the_counts_decide_alone() -> None:
    stream = Counter((), CounterOptions(theta=0.2, decay=1.0)).stream()
    run(stream, torch.zeros(4), ["x", "y", "x", "x"])
    assert stream.predict(0).probs.tolist() == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize("wrong", [{"theta": 1.1}, {"decay": 0.0}, {"decay": 1.1}, {"power": -1}])
def test_options_have_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        CounterOptions(**wrong)
