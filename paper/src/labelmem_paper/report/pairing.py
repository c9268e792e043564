"""Two methods on the same streams: their difference, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from labelmem.bootstrap import interval, resampled
from labelmem.render.tables import Estimate

__all__ = ["Blocks", "Difference", "PairedEstimate", "difference"]

Blocks: TypeAlias = Mapping[int, tuple[Sequence[float], Sequence[float]]]
"""For each seed: the tokens and the sum of a metric of every block of test streams."""
RESAMPLES = 2000


@dataclass(frozen=True)
class Difference:
    """How much more one has than another, with the bounds of the 95 % interval."""

    value: float
    low: float
    high: float
    seeds: int
    """How many both have."""


@dataclass(frozen=True)
class PairedEstimate(Estimate):
    """A figure with the sums by blocks of streams that it is a mean of."""

    blocks: Blocks | None = field(default=None, repr=False)

    def close_to(self, other: Estimate) -> bool:
        """Whether the two cannot be told apart: 0 lies in the interval of their difference.

        Where the blocks of both were kept, that is the interval on the same streams.
        """
        theirs = other.blocks if isinstance(other, PairedEstimate) else None
        paired = difference(self.blocks, theirs)
        return super().close_to(other) if paired is None else paired.low <= 0 <= paired.high


def difference(ours: Blocks | None, theirs: Blocks | None) -> Difference | None:
    """The mean over the common seeds of ours minus theirs, with a paired bootstrap interval.

    Whole blocks are drawn again, the same ones for both and apart for each seed. The bounds are
    means of the seeds' bounds and not narrowed by their number, because the test streams of
    different seeds overlap. None where there is no seed whose blocks both have.

    Examples
    --------
    >>> tokens = [10, 10, 10, 10]
    >>> a, b = {0: (tokens, [5, 9, 30, 1])}, {0: (tokens, [6, 10, 31, 2])}
    >>> difference(a, b)  # streams differ much, but the second is always 0.1 worse
    Difference(value=-0.1, low=-0.1, high=-0.1, seeds=1)
    """
    if not ours or not theirs:
        return None
    found = []
    for seed in sorted(set(ours) & set(theirs)):
        tokens, gap = np.array(ours[seed][0], float), np.subtract(ours[seed][1], theirs[seed][1])
        if list(ours[seed][0]) != list(theirs[seed][0]):  # other streams, e.g. of another recipe
            continue
        rng = np.random.default_rng(seed)
        drawn = resampled(np.stack([gap, tokens], axis=1), RESAMPLES, rng)
        found.append((gap.sum() / tokens.sum(), *interval(drawn[:, 0] / drawn[:, 1])))
    if not found:
        return None
    value, low, high = (round(float(x), 12) for x in np.mean(found, axis=0))
    return Difference(value, low, high, len(found))
