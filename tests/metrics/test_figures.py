from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics.counting import feed, random_tokens, slow_metrics, slow_rank
from torch import Tensor

from labelmem.metrics import StreamMetrics, reciprocal_rank


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 6), st.sampled_from(["32", "64", "bf16"]))
def test_reciprocal_rank_follows_the_definition(
    rng: random.Random, width: int, precision: str
) -> None:
    dtype = {"32": torch.float32, "64": torch.float64, "bf16": torch.bfloat16}[precision]
    tokens = random_tokens(rng, 1, 5, width)
    probs = torch.tensor([token[1] for token in tokens], dtype=dtype).reshape(5, width)
    seen = reciprocal_rank(probs, torch.tensor([token[2] for token in tokens]))
    expected = [1 / slow_rank(p.tolist(), t[2]) for p, t in zip(probs, tokens, strict=True)]
    assert seen.tolist() == pytest.approx(expected, rel=1e-6)


def test_ranks_of_known_cases() -> None:
    probs = torch.tensor([[0.5, 0.3, 0.2], [1 / 3] * 3, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    ranks = 1 / reciprocal_rank(probs, torch.tensor([1, 2, 1, -1]))
    assert ranks.tolist() == pytest.approx([2, 2, 2.5, 3])


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 6), st.integers(0, 5))
def test_figures_follow_the_definition(
    rng: random.Random, streams: int, steps: int, width: int
) -> None:
    tokens = random_tokens(rng, streams, steps, width)
    metrics = StreamMetrics()
    for start in range(0, len(tokens), streams):
        feed(metrics, tokens[start : start + streams])
    result = metrics.result(resamples=2)
    expected = slow_metrics(tokens)
    assert result.metrics.keys() == expected.keys() == result.interval.keys()
    for name, value in expected.items():
        assert result.metrics[name] == pytest.approx(value, nan_ok=True), name
    assert (result.streams, result.tokens) == (streams, len(tokens))
    assert metrics.running == pytest.approx(expected["log_perplexity"])


def test_the_order_of_feeding_does_not_matter() -> None:
    tokens = random_tokens(random.Random(1), 5, 8, 4)
    one_by_one, at_once, by_stream = StreamMetrics(), StreamMetrics(), StreamMetrics()
    for token in tokens:
        feed(one_by_one, [token])
    feed(at_once, tokens)
    for stream in range(5):
        feed(by_stream, [token for token in tokens if token[0] == stream])
    for other in (at_once, by_stream):
        seen, expected = other.result().metrics, one_by_one.result().metrics
        assert seen == pytest.approx(expected)
        for a, b in zip(other.by_position(8), one_by_one.by_position(8), strict=True):
            assert (a.start, a.stop, a.tokens) == (b.start, b.stop, b.tokens)
            assert (a.log_perplexity, a.accuracy) == pytest.approx((b.log_perplexity, b.accuracy))


def test_masked_rows_do_not_exist() -> None:
    tokens = random_tokens(random.Random(2), 4, 6, 3)
    keep = [index % 3 != 0 and token[0] != 3 for index, token in enumerate(tokens)]
    masked, only = StreamMetrics(), StreamMetrics()
    rubbish = [
        token if kept else (token[0], [math.nan] * 3, 99, True)
        for token, kept in zip(tokens, keep, strict=True)
    ]
    feed(masked, rubbish, mask=torch.tensor(keep))
    feed(only, [token for token, kept in zip(tokens, keep, strict=True) if kept])
    assert masked.result() == only.result()
    assert masked.by_position(4) == only.by_position(4)
    assert masked.result().streams == 3


def test_rows_are_streams_unless_told() -> None:
    metrics = StreamMetrics()
    for _ in range(3):
        metrics.update(torch.full((4, 2), 0.5), torch.tensor([0, 1, 0, 1]))
    assert (metrics.result().streams, metrics.result().tokens) == (4, 12)


def test_ids_may_be_large_numpy_or_tensors() -> None:
    metrics = StreamMetrics()
    probs, y = torch.full((2, 2), 0.5), torch.tensor([0, 1])
    metrics.update(probs, y, streams=[10**12, -5])
    metrics.update(probs, y, streams=np.array([10**12, -5]))  # type: ignore[arg-type]
    metrics.update(probs, y, streams=torch.tensor([10**12, -5]))  # type: ignore[arg-type]
    assert metrics.result().streams == 2


def test_the_floor_is_inside_the_logarithm_only() -> None:
    metrics = StreamMetrics()
    probs = torch.tensor([[1.0, 0.0], [1 - 1e-11, 1e-11], [1 - 1e-9, 1e-9]], dtype=torch.float64)
    metrics.update(probs, torch.tensor([1, 1, 1]))
    expected = (2 * -math.log(1e-10) - math.log(1e-9)) / 3
    result = metrics.result().metrics
    assert result["log_perplexity"] == pytest.approx(expected, rel=1e-12)
    assert result["floored"] == 2


def test_ties_are_won_by_the_lowest_position() -> None:
    metrics = StreamMetrics()
    probs = torch.tensor([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
    metrics.update(probs, torch.tensor([0, 1, 1]))
    assert metrics.result().metrics["accuracy"] == pytest.approx(2 / 3)


def test_a_label_without_a_column_is_never_a_hit() -> None:
    metrics = StreamMetrics()
    metrics.update(torch.zeros(2, 3), torch.tensor([3, -1]))
    metrics.update(torch.zeros(2, 0), torch.tensor([0, 5]))
    result = metrics.result().metrics
    assert (result["accuracy"], result["floored"]) == (0, 4)


def test_groups_may_come_and_go() -> None:
    metrics = StreamMetrics()
    probs, hit = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])
    metrics.update(probs, hit)
    metrics.update(probs, hit, groups={"first": torch.tensor([True, False])})
    metrics.update(probs, hit, groups={"never": torch.tensor([False, False])})
    metrics.update(probs, hit, groups={"first": torch.tensor([True, True])})
    result = metrics.result()
    assert result.metrics["accuracy_first"] == pytest.approx(2 / 3)
    assert math.isnan(result.metrics["accuracy_never"])
    assert all(map(math.isnan, result.interval["accuracy_never"]))


def test_losses_are_added_in_double_precision() -> None:
    metrics = StreamMetrics()
    probs, y = torch.full((1000, 1), 0.9), torch.zeros(1000, dtype=torch.int64)
    for _ in range(100):
        metrics.update(probs, y)
    exact = -math.log(float(torch.tensor(0.9)))
    assert metrics.running == pytest.approx(exact, rel=1e-12)


def test_gradients_are_left_alone() -> None:
    probs: Tensor = torch.full((2, 3), 1 / 3, requires_grad=True)
    metrics = StreamMetrics()
    metrics.update(probs.softmax(1), torch.tensor([0, 1]))
    assert metrics.result().tokens == 2
