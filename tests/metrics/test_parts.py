"""Figures of parts: positions in the stream, blocks of streams."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise

import pytest
import torch
from metrics.counting import feed, random_tokens, slow_metrics

from labelmem.errors import ConfigError
from labelmem.metrics import StreamMetrics


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


def test_blocks_are_at_least_one() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        StreamMetrics().blocks(0)
