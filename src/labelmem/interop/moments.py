"""What each label looks like on the whole: its mean and variance, kept up to date."""

from __future__ import annotations

import math

import numpy as np

from labelmem.interop.small_memory import Array

__all__ = ["Moments"]

_LEAST = 0.1  # of the ordinary variance: a feature that never changed may still change


class Moments:
    """Naive Bayes with normal features: a small online model that no one has to train.

    Every label starts from one imagined event of ordinary variance, so that its first real one is
    no certainty. Ordinary is a variance of one before :func:`labelmem.interop.alone.lifted`.

    Parameters
    ----------
    dim
        Length of the vectors h, whose first place is a constant and says nothing.

    Examples
    --------
    >>> moments = Moments(dim=2)
    >>> for x, y in [(-1.0, 0), (-1.2, 0), (1.0, 1), (1.2, 1)]:
    ...     moments.learn(np.array([0.7, x]), y)
    >>> moments.mean
    array([[-1.1],
           [ 1.1]])
    >>> moments.scores(np.array([0.7, -0.5])).argmax()
    np.int64(0)
    """

    def __init__(self, dim: int) -> None:
        self.count: list[int] = []
        self.mean = np.zeros((0, dim - 1))
        self.spread = np.zeros((0, dim - 1))  # sums of squared distances to the mean
        self.precision = np.zeros((0, dim - 1))  # half of one over the variance
        self.height = np.zeros(0)  # the score at the mean

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; those of the past are zero there."""
        more = dim - 1 - self.mean.shape[1]
        if more > 0:
            self._pad(((0, 0), (0, more)))
            for y in range(len(self.count)):
                self._refresh(y)

    def scores(self, h: Array) -> Array:
        """Logarithms (L,) of how likely each label and ``h`` (d,) are, up to a constant."""
        away = h[1:] - self.mean
        away *= away
        away *= self.precision
        scores: Array = self.height - np.add.reduce(away, axis=1)
        return scores

    def learn(self, h: Array, y: int) -> None:
        """Learn that the label of ``h`` (d,) was ``y``: a known one, or the next number."""
        if y == len(self.count):
            self.count.append(0)
            self._pad(((0, 1), (0, 0)))
            self.height = np.pad(self.height, (0, 1))
        self.count[y] = n = self.count[y] + 1
        away = h[1:] - self.mean[y]
        self.mean[y] += away / n
        away *= away
        away *= 1 - 1 / n
        self.spread[y] += away
        self._refresh(y)

    def _refresh(self, y: int) -> None:
        """What reading needs of one label, from its sums."""
        n, ordinary = self.count[y], 1 / max(1, self.mean.shape[1])
        variance = self.spread[y] + ordinary
        variance /= n + 1
        np.maximum(variance, _LEAST * ordinary, out=variance)
        np.divide(0.5, variance, out=self.precision[y])
        self.height[y] = math.log(n) - 0.5 * float(np.add.reduce(np.log(variance)))

    def _pad(self, more: tuple[tuple[int, int], tuple[int, int]]) -> None:
        parts = self.mean, self.spread, self.precision
        self.mean, self.spread, self.precision = (np.pad(part, more) for part in parts)
