"""What each label looks like on the whole: its mean and variance, kept up to date."""

from __future__ import annotations

import math

import numpy as np

from labelmem.interop.vectors import Array

__all__ = ["Moments"]

_LEAST = 0.1  # of the ordinary variance: a feature that never changed may still change


class Moments:
    """Naive Bayes with normal features: a small online model that no one has to train.

    Every label starts from one imagined event of ordinary variance, so that its first real one is
    no certainty. Ordinary is a variance of one before :func:`labelmem.interop.together.lifted`.

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
        self.spread = np.zeros((0, dim - 1))  # sums of squares around the mean, the imagined too
        self.precision = np.zeros((0, dim - 1))  # one over the variance
        self.height = np.zeros(0)  # the score at the mean
        self._measure(dim)

    def _measure(self, dim: int) -> None:
        self._ordinary = 1 / max(1, dim - 1)
        self._most = np.full(dim - 1, 1 / (_LEAST * self._ordinary))  # of the precision
        self._halves = np.full(dim - 1, 0.5)  # a product with it is half a sum

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; those of the past are zero there."""
        before, more = self._ordinary, dim - 1 - self.mean.shape[1]
        if more > 0:
            self._pad(((0, 0), (0, more)))
            self._measure(dim)
            self.spread[:, :-more] += self._ordinary - before
            self.spread[:, -more:] = self._ordinary
            for y in range(len(self.count)):
                self._refresh(y)

    def scores(self, h: Array) -> Array:
        """Logarithms (L,) of how likely each label and ``h`` (d,) are, up to a constant."""
        away = h[1:] - self.mean
        away *= away
        away *= self.precision
        scores: Array = self.height - away.dot(self._halves)
        return scores

    def learn(self, h: Array, y: int) -> None:
        """Learn that the label of ``h`` (d,) was ``y``: a known one, or the next number."""
        if y == len(self.count):
            self.count.append(0)
            self._pad(((0, 1), (0, 0)))
            self.spread[y] = self._ordinary
            self.height = np.append(self.height, 0.0)
        self.count[y] = n = self.count[y] + 1
        x, mean, spread = h[1:], self.mean[y], self.spread[y]
        away = x - mean
        mean += away / n
        away *= x - mean
        spread += away
        self._refresh(y)

    def _refresh(self, y: int) -> None:
        """What reading needs of one label, from its sums."""
        n, precision = self.count[y], self.precision[y]
        np.divide(n + 1, self.spread[y], out=precision)
        np.minimum(precision, self._most, out=precision)
        self.height[y] = math.log(n) + np.log(precision).dot(self._halves)

    def _pad(self, more: tuple[tuple[int, int], tuple[int, int]]) -> None:
        parts = self.mean, self.spread, self.precision
        self.mean, self.spread, self.precision = (np.pad(part, more) for part in parts)
