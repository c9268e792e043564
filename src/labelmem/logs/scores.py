"""How well items were predicted: sums for each user, figures with intervals, and differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.bootstrap import interval, resampled
from labelmem.metrics import FLOOR

__all__ = ["COLUMNS", "FIGURES", "Interval", "Scores", "measured"]

Array = npt.NDArray[np.float64]
COLUMNS = ("events", "reciprocal_rank", "first", "among_top", "nameable", "nats")
"""What is added up."""
FIGURES = ("accuracy", "top", "mrr", "log_perplexity")
"""Accuracy of the first prediction, share of events among the top k, mean reciprocal rank: over all
events. Nats: over those whose item had a name, because a rare item that comes to a user for the
first time has none, and no method can give it a probability."""
_RESAMPLES = 1000


@dataclass(frozen=True)
class Interval:
    """A figure and the bounds of its 95 % interval, by drawing users again and again."""

    value: float
    low: float
    high: float


def measured(figures: Tensor, named: Tensor, top: int) -> Tensor:
    """(n, columns) what each of n predictions adds up to, of which the ``figures`` are known.

    The rank is 1 + the labels above + half of those that tie. An item that is not ``named`` (n,) is
    missed.

    Examples
    --------
    >>> from labelmem.scoring import ranked
    >>> probs, y = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([2])
    >>> measured(ranked(probs, y), torch.tensor([True]), top=2)[0, 1:4]
    tensor([0.4000, 0.0000, 0.0000])
    """
    p, rank, _, _ = figures
    named = named.to(p.dtype)
    loss = -torch.log(p.clamp(min=FLOOR))
    columns = [torch.ones_like(p), named / rank, named * (rank < 1.5), named * (rank <= top)]
    return torch.stack([*columns, named, named * loss], dim=1)


class Scores:
    """Sums for each of so many users.

    Examples
    --------
    >>> scores = Scores(2)
    >>> scores.add([0, 1], np.array([[1, 1.0, 1, 1, 1, 0.5], [1, 0.5, 0, 1, 1, 1.5]]))
    >>> scores.figures()["mrr"], scores.figures()["log_perplexity"]
    (0.75, 1.0)
    """

    def __init__(self, users: int) -> None:
        self.sums: Array = np.zeros((users, len(COLUMNS)))

    def add(self, users: Sequence[int], values: Array) -> None:
        """Add rows of :func:`measured`; a user comes at most once."""
        self.sums[users] += values

    def figures(self) -> dict[str, float]:
        """Every event weighs alike."""
        return {name: float(value) for name, value in figures_of(self.sums.sum(0)).items()}

    def intervals(self, seed: int = 0) -> dict[str, Interval]:
        """Figures with their intervals."""
        drawn = figures_of(self._drawn(seed))
        return {name: _interval(value, drawn[name]) for name, value in self.figures().items()}

    def gains(self, other: Scores, seed: int = 0) -> dict[str, Interval]:
        """How much better than another method on the same users, which are drawn together.

        Above zero is better, in nats too.
        """
        ours, theirs = self.figures(), other.figures()
        a, b = figures_of(self._drawn(seed)), figures_of(other._drawn(seed))
        sign = {name: -1.0 if name == "log_perplexity" else 1.0 for name in FIGURES}
        return {
            name: _interval(
                sign[name] * (ours[name] - theirs[name]), sign[name] * (a[name] - b[name])
            )
            for name in FIGURES
        }

    def _drawn(self, seed: int) -> Array:
        """(resamples, columns) sums over as many users, drawn with replacement."""
        return resampled(self.sums, _RESAMPLES, np.random.default_rng(seed))


def figures_of(sums: Array) -> dict[str, Array]:
    """Figures from sums (..., columns); nan where nothing was counted."""
    of = dict(zip(COLUMNS, np.moveaxis(sums, -1, 0), strict=True))
    with np.errstate(invalid="ignore"):
        return {
            "accuracy": of["first"] / of["events"],
            "top": of["among_top"] / of["events"],
            "mrr": of["reciprocal_rank"] / of["events"],
            "log_perplexity": of["nats"] / of["nameable"],
        }


def _interval(value: float, drawn: Array) -> Interval:
    low, high = interval(drawn)
    return Interval(value, value, value) if math.isnan(low) else Interval(value, low, high)
