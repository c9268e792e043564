"""Curves and comparisons from traces."""

from __future__ import annotations

import numpy as np

from labelmem.bootstrap import interval, resampled
from labelmem.demo.trace import Array, Trace
from labelmem.render.tables import Estimate

__all__ = ["by_meeting", "by_position", "difference"]

Curve = tuple[list[float], list[float]]


def by_position(trace: Trace, bins: int = 10) -> Curve:
    """Accuracy along the streams, as far as at least half of the users have come.

    Examples
    --------
    >>> trace = Trace([(None, "abcd"), (None, "abcd")], known=9)
    >>> trace.hit[:] = [[0, 0, 1, 1], [0, 1, 1, 1]]
    >>> by_position(trace, bins=2)
    ([1.5, 3.5], [0.25, 1.0])
    """
    running = ~np.isnan(trace.hit)
    steps = int((running.mean(axis=0) >= 0.5).sum())
    parts = np.array_split(np.arange(steps), min(bins, steps))
    middles = [float(part.mean()) + 1 for part in parts]
    return middles, [float(np.nanmean(trace.hit[:, part])) for part in parts]


def by_meeting(trace: Trace, most: int = 8) -> Curve:
    """Accuracy on new labels, by how often the user has shown the label before."""
    before = _times_before(trace.label)
    x, y = [], []
    for times in range(most):
        there = (trace.new == 1) & (before == times)
        if there.sum() >= 10:
            x.append(float(times))
            y.append(float(trace.hit[there].mean()))
    return x, y


def difference(ours: Trace, theirs: Trace, new: bool, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on new or seen labels, user by user.

    The interval comes from drawing whole users anew; both methods are always scored on the same.
    """
    there = ours.new == float(new)
    gain = np.where(there, ours.hit - theirs.hit, 0.0).sum(axis=1)
    tokens = there.sum(axis=1).astype(np.float64)
    if not tokens.sum():
        return Estimate(float("nan"))
    drawn = resampled(np.stack([gain, tokens], axis=1), 1000, np.random.default_rng(seed))
    low, high = interval(drawn[:, 0] / np.maximum(drawn[:, 1], 1))
    return Estimate(float(gain.sum() / tokens.sum()), low, high)


def _times_before(labels: Array) -> Array:
    """How often each user has shown the step's label earlier."""
    times = np.full(labels.shape, np.nan)
    for user, own in enumerate(labels):
        for t in range(int((~np.isnan(own)).sum())):
            times[user, t] = (own[:t] == own[t]).sum()
    return times
