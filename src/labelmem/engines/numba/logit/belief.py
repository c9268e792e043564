"""What a prediction leaves behind for its label: one array, and where in it everything lies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import kernel

__all__ = [
    "CANDIDATES",
    "CHOSEN",
    "LABELS",
    "PEAK",
    "REST",
    "PLACED",
    "SLOTS_THEN",
    "SURE",
    "TOTAL",
    "Belief",
    "belief_at",
    "features_of",
    "room_of",
]

SLOTS_THEN, CANDIDATES, CHOSEN, LABELS, TOTAL, REST, PEAK, SURE, PLACED = range(9)
"""Numbers at the beginning; ``SURE`` is there once the label is."""
_HEAD = 16


class Belief(NamedTuple):
    """What a user's memory made of one input."""

    head: Any
    theta: Any
    listed: Any
    """(t,) the labels of the model's largest logits."""
    value: Any
    """(t,) these logits."""
    placed: Any
    across: Any
    near: Any
    label: Any
    """(C,) the labels of the candidates; the last stands for the rest."""
    means: Any
    offset: Any
    scores: Any
    features: Any
    """Those of the candidates, one row for each kind: see :func:`features_of`."""


def room_of(features: int, listed: int, dim: int, slots: int, cells: int) -> int:
    """How many numbers it takes."""
    most = slots + listed + 1
    return _HEAD + features + 2 * listed + 2 * dim + cells + slots + (3 + features) * most


@kernel
def belief_at(room: Any, features: int, listed: int, dim: int, slots: int, cells: int) -> Any:
    """The parts by name; candidates have room for as many as there can be."""
    most, a = slots + listed + 1, _HEAD
    theta = room[a : a + features]
    a += features
    label, value = room[a : a + listed], room[a + listed : a + 2 * listed]
    a += 2 * listed
    placed, across = room[a : a + dim], room[a + dim : a + 2 * dim]
    a += 2 * dim
    near, means = room[a : a + cells], room[a + cells : a + cells + slots]
    a += cells + slots
    parts = room[a : a + 3 * most].reshape((3, most))
    return Belief(
        room[:_HEAD], theta, label, value, placed, across, near, parts[0], means, parts[1],
        parts[2], room[a + 3 * most :],
    )  # fmt: skip


@kernel
def features_of(b: Any, n: int) -> Any:
    """(k, C) features of so many candidates."""
    k = len(b.theta)
    return b.features[: k * n].reshape((k, n))
