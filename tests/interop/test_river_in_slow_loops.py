"""River's classifier without a model against the same thing as one would write it down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from oracle.lmn import OracleMemory
from slow import oracle_config

from labelmem import MemoryConfig
from labelmem.interop.river import LabelMemClassifier
from labelmem.interop.together import TOGETHER

Row = list[float]


class SlowClassifier:
    """Lists of all that ever came, and every figure from the beginning each time."""

    def __init__(self, memory: MemoryConfig, window: int) -> None:
        self.memory = OracleMemory(oracle_config(memory))
        self.window = window
        self.past: list[tuple[Row, Any]] = []
        self.belief = [0.3, 0.3, 0.6]

    @property
    def labels(self) -> list[Any]:
        return list(dict.fromkeys(y for _, y in self.past))

    def predict(self, x: Mapping[str, float | None]) -> dict[Any, float]:
        return self.pool(self.opinions(lift(x))) if self.past else {}

    def learn(self, x: Mapping[str, float | None], y: Any) -> None:
        h, time = lift(x), len(self.past)
        if y in self.labels and (time < 200 or time % 8 == 0):
            opinions = self.opinions(h)
            P = self.pool(opinions)
            for k, log in enumerate(opinions):
                slope = log[y] - sum(P[z] * log[z] for z in P)
                self.belief[k] = max(0.0, self.belief[k] + 0.02 * slope)
        self.memory.write(h, y, self.memory.read(h), time)
        self.past.append((h, y))

    def pool(self, opinions: list[dict[Any, float]]) -> dict[Any, float]:
        weights = {
            y: math.exp(sum(b * log[y] for b, log in zip(self.belief, opinions, strict=True)))
            for y in self.labels
        }
        return {y: weight / sum(weights.values()) for y, weight in weights.items()}

    def opinions(self, h: Row) -> list[dict[Any, float]]:
        s = self.memory.read(h)
        said = [
            {y: self.likelihood(h, y) for y in self.labels},
            {y: math.log(s.get(y, 0.0) or 1e-300) for y in self.labels},
            {y: math.log(p) for y, p in self.votes(h).items()},
        ]
        tops = [max(log.values()) for log in said]
        return [
            {y: max(-6.0, log[y] - top) for y in log} for log, top in zip(said, tops, strict=True)
        ]

    def likelihood(self, h: Row, y: Any) -> float:
        rows = [row for row, label in self.past if label == y]
        total, ordinary = math.log(len(rows)), 1 / (len(h) - 1)
        for j in range(1, len(h)):
            mean = sum(row[j] for row in rows) / len(rows)
            spread = sum((row[j] - mean) ** 2 for row in rows)
            variance = max((spread + ordinary) / (len(rows) + 1), 0.1 * ordinary)
            total -= 0.5 * ((h[j] - mean) ** 2 / variance + math.log(variance))
        return total

    def votes(self, h: Row) -> dict[Any, float]:
        last = self.past[-self.window :]
        near = sorted(((math.dist(row, h), y) for row, y in last), key=lambda one: one[0])[:5]
        whole = sum(1 / distance for distance, _ in near)
        return {
            label: (
                sum(1 / distance for distance, y in near if y == label) * len(near) / whole
                + 1 / len(self.labels)
            )
            / (len(near) + 1)
            for label in self.labels
        }


def lift(x: Mapping[str, float | None]) -> Row:
    known = sum(value is not None for value in x.values())
    return [0.7, *((x[name] or 0.0) / math.sqrt(max(1, known)) for name in sorted(x))]


def stream(seed: int, count: int) -> list[tuple[dict[str, float | None], str]]:
    """Three labels, the last of them late, each around two places; now and then a value is lost."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(3, 2, 4)) * 2
    events: list[tuple[dict[str, float | None], str]] = []
    for t in range(count):
        label = int(rng.integers(2 if t < 20 else 3))
        row = (places[label, rng.integers(2)] + rng.normal(size=4)).tolist()
        x: dict[str, float | None] = dict(zip("dbca", row, strict=True))
        if rng.random() < 0.1:
            x["abcd"[int(rng.integers(4))]] = None
        events.append((x, "xyz"[label]))
    return events


@pytest.mark.parametrize("lam", [20.0, 60.0])
@pytest.mark.parametrize("capacity", [None, 2])
def test_every_answer_is_that_of_slow_loops(lam: float, capacity: int | None) -> None:
    memory = MemoryConfig(
        lam=lam, delta=TOGETHER.delta, margin=2.0, cells_per_label=3, capacity=capacity
    )
    quick, slow = LabelMemClassifier(memory=memory, window=70), SlowClassifier(memory, window=70)
    for x, y in stream(0, 225):
        P, expected = quick.predict_proba_one(x), slow.predict(x)
        assert list(P) == list(expected)
        assert list(P.values()) == pytest.approx(list(expected.values()), abs=1e-8)
        assert quick.predict_one(x) == max(P, key=P.__getitem__, default=None)
        quick.learn_one(x, y)
        slow.learn(x, y)
