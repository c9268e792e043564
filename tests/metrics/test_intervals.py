from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
import torch
from metrics.counting import Token, feed, random_tokens, slow_metrics

from labelmem.metrics import StreamMetrics


def slow_bootstrap(
    tokens: list[Token], resamples: int, statistic: Callable[[list[Token]], float]
) -> list[float]:
    """Draw whole streams and compute the figure from all their tokens, by the definition."""
    by_stream = defaultdict(list)
    for token in tokens:
        by_stream[token[0]].append(token)
    rng, drawn = random.Random(0), []
    for _ in range(resamples):
        picks = rng.choices(list(by_stream), k=len(by_stream))
        drawn.append(statistic([token for pick in picks for token in by_stream[pick]]))
    return drawn


@pytest.mark.parametrize("name", ["log_perplexity", "mrr", "accuracy", "accuracy_new", "floored"])
def test_intervals_agree_with_a_slow_bootstrap(name: str) -> None:
    rng = random.Random(3)
    # Streams of very different lengths: the figure is a ratio of two random sums.
    tokens = [
        (stream, *token[1:])
        for stream in range(40)
        for token in random_tokens(rng, 1, rng.choice([1, 2, 5, 20]), 3)
    ]
    metrics = StreamMetrics()
    feed(metrics, tokens)
    drawn = slow_bootstrap(tokens, 1000, lambda some: slow_metrics(some)[name])
    expected = np.quantile(drawn, [0.05, 0.95])
    low, high = metrics.result(confidence=0.9, resamples=6000, seed=1).interval[name]
    assert low < metrics.result().metrics[name] < high
    assert (low, high) == pytest.approx(tuple(expected), abs=0.15 * (expected[1] - expected[0]))


def test_intervals_repeat_by_seed_and_narrow_with_confidence() -> None:
    metrics = StreamMetrics()
    feed(metrics, random_tokens(random.Random(4), 30, 5, 3))
    assert metrics.result(seed=5) == metrics.result(seed=5)
    assert metrics.result(seed=5).interval != metrics.result(seed=6).interval
    wide, narrow = (metrics.result(confidence=c).interval["mrr"] for c in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_results_do_not_depend_on_how_draws_are_chunked() -> None:
    metrics = StreamMetrics()
    metrics.update(torch.rand(30_000, 2).softmax(1), torch.zeros(30_000, dtype=torch.int64))
    low, high = metrics.result(resamples=70).interval["log_perplexity"]
    assert low < metrics.running < high


def test_one_stream_has_no_interval() -> None:
    metrics = StreamMetrics()
    metrics.update(torch.full((5, 2), 0.5), torch.zeros(5, dtype=torch.int64), streams=[0] * 5)
    assert all(map(math.isnan, metrics.result().interval["log_perplexity"]))
