"""A task of the demo: a trained model and the users it is going to meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from labelmem.online import Recorded

__all__ = ["Size", "Task", "seeded"]


@dataclass(frozen=True)
class Size:
    """How much is done: the demo proper, or a tiny run for tests."""

    digit_users: tuple[int, int] = (112, 64)
    """Users who draw digits: to validate and to test on."""
    digit_steps: int = 80
    """Digits that each of them draws."""
    visitors: int = 360
    """Users of the habits task, all parts together."""
    visits: tuple[int, int] = (80, 120)
    """Fewest and most visits of one of them."""
    model_epochs: int = 40
    """Most passes of the models' own training."""
    combiner_epochs: int = 16
    """Most passes of the combiner's training."""
    trials: int = 20
    """Settings of each method that are tried on validation users."""

    @classmethod
    def quick(cls) -> Size:
        """A few seconds; the figures mean little."""
        return cls((6, 6), 20, 30, (12, 16), model_epochs=3, combiner_epochs=1, trials=2)


@dataclass(frozen=True)
class Task:
    """A trained model, and streams of users it was not trained on."""

    name: str
    story: Sequence[str]
    """What happens here, in plain sentences."""
    model: nn.Module
    labels: int
    """How many labels the model knows: 0 up to this."""
    baselines: Sequence[str]
    """What LMN-fixed and LMN are compared with, in the order of the table."""
    train: Sequence[Recorded]
    """What the model was trained on, for methods that learn from it too."""
    valid: Sequence[Recorded]
    """Users on whom everything that can be chosen is chosen."""
    test: Sequence[Recorded]
    """Users who are scored once."""
    adapter: Mapping[str, Any]
    """Options of the adapter, for LMN and LMN-fixed alike: ``key``, ``partition``."""
    combiner: Mapping[str, Any] = field(default_factory=dict)
    """Options of LMN's combiner."""
    pictures: tuple[int, int] | None = None
    """Height and width of an input, where it is a picture."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the weights of models made inside, and leave torch's generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
