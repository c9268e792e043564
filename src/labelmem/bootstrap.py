"""Bootstrap intervals: whole streams are drawn again and again, with replacement."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["interval", "resampled"]

Array = npt.NDArray[np.float64]
_AT_ONCE = 1_000_000  # drawn streams that are held in memory


def resampled(sums: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Sums over as many streams as there are, drawn with replacement: (resamples, columns).

    Parameters
    ----------
    sums
        (streams, columns) what each stream adds up to.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> resampled(np.array([[1.0, 2.0], [1.0, 4.0]]), 3, rng)
    array([[2., 8.],
           [2., 6.],
           [2., 4.]])
    """
    streams = len(sums)
    chunk = max(1, _AT_ONCE // streams)
    drawn = []
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        picks = rng.integers(streams, size=(rows, streams)) + np.arange(rows)[:, None] * streams
        counts = np.bincount(picks.ravel(), minlength=rows * streams).reshape(rows, streams)
        drawn.append(counts.astype(np.float64) @ sums)
    return np.concatenate(drawn)


def interval(values: Array, confidence: float = 0.95) -> tuple[float, float]:
    """The bounds between which the share ``confidence`` of the values lies; nan if there are none.

    Values that are nan are left out: draws in which nothing was counted.

    Examples
    --------
    >>> interval(np.array([0.0, 1.0, 2.0, np.nan]), confidence=0.5)
    (0.5, 1.5)
    """
    values = values[~np.isnan(values)]
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
