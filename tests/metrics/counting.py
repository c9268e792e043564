"""Tokens drawn at random, and every figure of them from the definition, by slow loops."""

from __future__ import annotations

import math
import random
from typing import Any

import torch

from labelmem.metrics import FLOOR, StreamMetrics

Token = tuple[int, list[float], int, bool]  # stream, row of probabilities, y, whether it is new


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
