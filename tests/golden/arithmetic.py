"""Numbers, weights and streams from plain arithmetic: the same on every platform and version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def numbers(seed: int) -> Iterator[float]:
    """Numbers in [0, 1) of a linear congruential generator."""
    x = seed
    while True:
        x = (1103515245 * x + 12345) % 2**31
        yield x / 2**31


def filled(module: nn.Module, seed: int, scale: float = 0.8) -> Any:
    """The same module with weights in [-scale, scale)."""
    draw = numbers(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            values = [scale * (2 * next(draw) - 1) for _ in range(parameter.numel())]
            parameter.copy_(torch.tensor(values, dtype=torch.float64).view_as(parameter))
    return module


def habits(known: Sequence[Any], own: Sequence[Any], steps: int, seed: int) -> list[Any]:
    """Labels of a user with three favourites; labels of their own join one after another."""
    draw = numbers(seed)
    names = [*known, *own]
    favourites = [int(next(draw) * len(known)) for _ in range(3)]
    labels = []
    for t in range(steps):
        there = len(known) + min(len(own), (len(own) + 1) * t // (steps * 2 // 3))
        pool = [*favourites, *range(len(known), there)]
        drawn = pool[int(next(draw) * len(pool))] if next(draw) < 0.7 else None
        labels.append(names[int(next(draw) * there) if drawn is None else drawn])
    return labels


def vectors(labels: Sequence[Any], dim: int, seed: int) -> Tensor:
    """(T, dim) inputs, scattered about one centre for each label."""
    draw = numbers(seed)
    centres: dict[str, list[float]] = {}
    rows = []
    for label in labels:
        centre = centres.setdefault(repr(label), [2 * next(draw) - 1 for _ in range(dim)])
        rows.append([c + 0.6 * (2 * next(draw) - 1) for c in centre])
    return torch.tensor(rows)


def tokens(labels: Sequence[Any], known: int) -> Tensor:
    """(T,) inputs of a model of sequences: the label before, ``known`` where it knows none."""
    before = [label if isinstance(label, int) and label < known else known for label in labels]
    return torch.tensor([known, *before[:-1]])
