from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labelmem.errors import ConfigError, InputError
from labelmem.metrics import FLOOR, StreamMetrics, reciprocal_rank


def slow_rank(row: list[float], y: int) -> float:
    if not 0 <= y < len(row):
        row, y = [*row, 0.0], len(row)
    others = [p for column, p in enumerate(row) if column != y]
    return 1 + sum(p > row[y] for p in others) + sum(p == row[y] for p in others) / 2


def slow_argmax(row: list[float]) -> int:
    best = 0
    for column, p in enumerate(row):
        if p > row[best]:
            best = column
    return best


Token = tuple[int, list[float], int, bool]  # stream, row of probabilities, y, whether it is new


def slow_metrics(tokens: list[Token]) -> dict[str, float]:
    """Every figure from the definition, one token after the other."""
    losses, ranks, hits, floored = [], [], [], 0
    groups: dict[str, list[bool]] = {"new": [], "seen": []}
    for _, row, y, is_new in tokens:
        p = row[y] if 0 <= y < len(row) else 0.0
        floored += p < FLOOR
        losses.append(-math.log(max(p, FLOOR)))
        ranks.append(1 / slow_rank(row, y))
        hits.append(len(row) > 0 and slow_argmax(row) == y)
        groups["new" if is_new else "seen"].append(hits[-1])
    loss = sum(losses) / len(losses)
    figures = {"log_perplexity": loss, "bits": loss / math.log(2), "perplexity": math.exp(loss)}
    figures |= {"mrr": sum(ranks) / len(ranks), "accuracy": sum(hits) / len(hits)}
    for name, part in groups.items():
        figures[f"accuracy_{name}"] = sum(part) / len(part) if part else math.nan
    return figures | {"floored": float(floored)}


def random_tokens(rng: random.Random, streams: int, steps: int, width: int) -> list[Token]:
    """Coarse probabilities, so that ties, zeros and labels without a column all occur."""
    tokens = []
    for _ in range(steps):
        for stream in range(streams):
            counts = [rng.choice([0, 0, 1, 1, 2, 5]) for _ in range(width)]
            row = [count / max(sum(counts), 1) for count in counts]
            tokens.append((stream, row, rng.randint(-1, width), rng.random() < 0.3))
    return tokens


def feed(metrics: StreamMetrics, tokens: list[Token], **options: Any) -> None:
    is_new = torch.tensor([token[3] for token in tokens], dtype=torch.bool)
    metrics.update(
        torch.tensor([token[1] for token in tokens], dtype=torch.float64).reshape(len(tokens), -1),
        torch.tensor([token[2] for token in tokens], dtype=torch.int64),
        streams=[token[0] for token in tokens],
        groups={"new": is_new, "seen": ~is_new},
        **options,
    )


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


def test_merged_shards_equal_the_whole() -> None:
    tokens = random_tokens(random.Random(6), 6, 9, 4)
    whole, left, right = StreamMetrics(), StreamMetrics(), StreamMetrics()
    feed(whole, [token for token in tokens if token[0] < 3])
    feed(whole, [token for token in tokens if token[0] >= 3])
    feed(left, [token for token in tokens if token[0] < 3])
    # Shards number their own streams from 0, and their groups may come in another order.
    right.update(torch.ones(1, 4) / 4, torch.tensor([0]), torch.tensor([False]))
    feed(right, [(token[0] - 3, *token[1:]) for token in tokens if token[0] >= 3])
    left.merge(right)
    left.merge(StreamMetrics())
    assert left.result().metrics == pytest.approx(whole.result().metrics)
    assert left.result().streams == 6
    assert left.by_position(5) == whole.by_position(5)
    assert right.result().streams == 3


def test_merge_lines_up_the_groups() -> None:
    a, b = StreamMetrics(), StreamMetrics()
    probs, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    yes, no = torch.tensor([True]), torch.tensor([False])
    a.update(probs, y, groups={"x": yes, "y": no})
    b.update(probs, 1 - y, groups={"y": yes, "z": yes, "x": no})
    a.merge(b)
    seen = a.result().metrics
    assert [seen[f"accuracy_{group}"] for group in "xyz"] == [1, 0, 0]


def test_the_curve_by_position() -> None:
    rng = random.Random(7)
    lengths = [1, 3, 8, 9, 40, 100]
    tokens = [
        (stream, *token[1:])
        for stream, length in enumerate(lengths)
        for token in random_tokens(rng, 1, length, 3)
    ]
    metrics = StreamMetrics()
    feed(metrics, tokens)
    curve = metrics.by_position(1000)
    edges = [*range(8), 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112]
    assert [(part.start, part.stop) for part in curve] == list(pairwise(edges))
    position: dict[int, int] = defaultdict(int)
    counted = []
    for token in tokens:
        counted.append((position[token[0]], token))
        position[token[0]] += 1
    for bins in (1, 2, 7, 24, 1000):
        curve = metrics.by_position(bins)
        assert len(curve) <= bins and curve[0].start == 0 and curve[-1].stop == 112
        for part in curve:
            inside = [token for where, token in counted if part.start <= where < part.stop]
            expected = slow_metrics(inside)
            assert part.tokens == len(inside)
            assert part.log_perplexity == pytest.approx(expected["log_perplexity"])
            assert part.accuracy == pytest.approx(expected["accuracy"])


def test_positions_of_long_streams_are_bucketed() -> None:
    metrics = StreamMetrics()
    probs = torch.full((70_000, 1), 1.0)
    metrics.update(probs, torch.zeros(70_000, dtype=torch.int64), streams=[0] * 70_000)
    curve = metrics.by_position(10_000)
    assert all(a.stop == b.start for a, b in pairwise(curve))
    assert [part.tokens for part in curve[:-1]] == [part.stop - part.start for part in curve[:-1]]
    assert sum(part.tokens for part in curve) == 70_000


def test_nothing_counted_yet() -> None:
    metrics = StreamMetrics()
    assert math.isnan(metrics.running) and metrics.by_position(3) == []
    metrics.update(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    metrics.update(torch.full((1, 1), 1.0), torch.tensor([0]), mask=torch.tensor([False]))
    with pytest.raises(InputError, match="no tokens"):
        metrics.result()


GOOD: dict[str, Any] = {"probs": torch.full((2, 3), 1 / 3), "y": torch.tensor([0, 1])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probs": torch.ones(2)}, r"probs is torch.float32 of shape \(2,\)"),
        ({"probs": torch.ones(2, 3).long()}, "expected floats"),
        ({"probs": torch.full((2, 3), math.nan)}, "probs holds nan"),
        ({"probs": torch.tensor([[0.5, math.nan, 0.5], [1, 0, 0]])}, "probs holds nan"),
        ({"probs": torch.full((2, 3), -1.0)}, r"probs holds -1.0.*not logits"),
        ({"probs": torch.tensor([[0.1, 3.0, 0], [1, 0, 0]])}, r"probs holds 3.0"),
        ({"y": torch.tensor([0])}, r"y is torch.int64 of shape \(1,\)"),
        ({"y": torch.tensor([0.0, 1.0])}, "expected whole numbers"),
        ({"mask": torch.tensor([1, 0])}, "mask is torch.int64"),
        ({"mask": torch.tensor([True])}, r"mask is torch.bool of shape \(1,\)"),
        ({"groups": {"new": torch.tensor([[True, True]])}}, "group 'new' is"),
        ({"streams": [1, 2, 3]}, "streams names 3 rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_told_and_changes_nothing(change: dict[str, Any], message: str) -> None:
    metrics = StreamMetrics()
    metrics.update(**GOOD)
    before = metrics.result()
    with pytest.raises(InputError, match=message):
        metrics.update(**(GOOD | change))
    assert metrics.result() == before


def test_bad_options_are_told() -> None:
    metrics = StreamMetrics()
    metrics.update(**GOOD)
    for options in ({"confidence": 0.0}, {"confidence": 95.0}, {"resamples": 0}):
        with pytest.raises(ConfigError):
            metrics.result(**options)
    with pytest.raises(ConfigError, match="bins is 0"):
        metrics.by_position(0)


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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_gives_the_same_figures_in_one_transfer() -> None:
    probs = torch.rand(50, 7, generator=torch.Generator().manual_seed(0)).softmax(1)
    y = torch.arange(50) % 9 - 1
    here, there = StreamMetrics(), StreamMetrics()
    groups = {"odd": y % 2 == 1, "even": y % 2 == 0}
    here.update(probs, y, mask=y != 3, groups=groups)
    moved = {name: flag.cuda() for name, flag in groups.items()}
    arguments = (probs.cuda(), y.cuda(), (y != 3).cuda())
    there.update(*arguments, groups=moved)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        there.update(*arguments, groups=moved)
    transfers = [event for event in profile.events() if "Memcpy DtoH" in event.name]
    assert len(transfers) == 1
    assert there.result().metrics["mrr"] == pytest.approx(here.result().metrics["mrr"])


def test_blocks_are_of_streams_in_the_order_of_their_ids() -> None:
    one, other = StreamMetrics(), StreamMetrics()
    probs = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    y = torch.tensor([0, 3, 1, 2, 0, 1])
    one.update(probs, y, streams=[0, 1, 2, 3, 4, 5])
    for row in (4, 2, 0, 5, 1, 3):
        other.update(probs[[row]], y[[row]], streams=[row])
    by_stream = one.blocks()
    assert [block.tokens for block in by_stream] == [1] * 6
    assert [block.loss for block in by_stream] == pytest.approx(
        (-probs[range(6), y].log()).tolist()
    )
    assert by_stream == other.blocks()
    halves = one.blocks(2)
    assert [block.tokens for block in halves] == [3, 3]
    assert halves[1].loss == pytest.approx(sum(block.loss for block in by_stream[3:]))
    assert sum(block.reciprocal_rank for block in halves) / 6 == pytest.approx(
        one.result().metrics["mrr"]
    )


def test_blocks_need_ids() -> None:
    one, other = StreamMetrics(), StreamMetrics()
    other.update(torch.tensor([[1.0]]), torch.tensor([0]))
    one.merge(other)
    with pytest.raises(InputError, match="merged"):
        one.blocks()
    with pytest.raises(ConfigError, match="at least 1"):
        other.blocks(0)


def test_what_waits_on_a_device_is_counted_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once, later = StreamMetrics(), StreamMetrics()
    draw = torch.Generator().manual_seed(1)
    for metrics in (at_once, later):
        draw.manual_seed(1)
        monkeypatch.setattr(metrics, "_wait_for", lambda _, wait=metrics is later: wait)
        for t in range(150):  # more than wait together
            rows = 3 if t < 100 else 2
            probs = torch.rand(rows, 5, generator=draw).softmax(1)
            y = torch.randint(6, (rows,), generator=draw)
            mask = torch.rand(rows, generator=draw) < 0.8
            metrics.update(probs, y, mask, groups={"low": y < 2})
    assert at_once.running == later.running
    assert at_once.result() == later.result()
    assert at_once.by_position() == later.by_position() and at_once.blocks() == later.blocks()
    bad = StreamMetrics()
    monkeypatch.setattr(bad, "_wait_for", lambda _: True)
    bad.update(torch.tensor([[2.0, 3.0]]), torch.tensor([0]))
    with pytest.raises(InputError, match="logits"):
        bad.result()
