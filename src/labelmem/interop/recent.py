"""The last events as they were, and the votes of those nearest."""

from __future__ import annotations

import math

import numpy as np

from labelmem.interop.small_memory import Array

__all__ = ["Recent"]

_NEAREST = 5  # as many as river's and scikit-learn's neighbours ask
_ROOM = 2**18  # numbers kept at most: of very long vectors, fewer are kept
_SAME = 1e-14  # of a squared length: two vectors closer than that are one
_TINY = 1e-300  # the same for vectors without length


class Recent:
    """A window over the stream: the five nearest of its events vote by one over their distance.

    One vote more is spread over all labels, so that five neighbours are never certain.

    Parameters
    ----------
    window
        How many events are kept; the oldest makes room for the newest.
    dim
        Length of the vectors; :meth:`widen` makes it larger.

    Examples
    --------
    >>> recent = Recent(window=3, dim=1)
    >>> for x, y in [(0.0, 0), (1.0, 0), (5.0, 1), (6.0, 1)]:
    ...     recent.learn(np.array([x]), y)
    >>> recent.y.tolist()            # the first was forgotten
    [1, 0, 1]
    >>> recent.read(np.array([2.0]), labels=2).round(2)
    array([0.6, 0.4])
    """

    def __init__(self, window: int, dim: int) -> None:
        self.window = window
        self.seen = 0
        self.minus_two_h = np.zeros((0, dim))
        self.square = np.zeros(0)  # of the length of h
        self.y = np.zeros(0, dtype=np.int64)
        self._resize(dim)

    def __len__(self) -> int:
        return min(self.seen, len(self.y))

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; what is kept is zero there."""
        if dim > self.minus_two_h.shape[1]:
            self._resize(dim)

    def read(self, h: Array, labels: int) -> Array:
        """Probabilities (labels,) for ``h`` (d,), from one event on."""
        n = len(self)
        far = self.minus_two_h[:n] @ h
        far += self.square[:n]
        square = float(h @ h)
        least = _SAME * square + _TINY
        asked = min(n, _NEAREST)
        votes, cast = [0.0] * labels, 0.0
        for _ in range(asked):  # looking for the smallest five times is faster than a partition
            i = far.argmin()
            vote = 1.0 / math.sqrt(max(float(far[i]) + square, least))
            votes[self.y[i]] += vote
            cast += vote
            far[i] = math.inf
        probs = np.array(votes)
        probs *= asked / (cast * (asked + 1))
        probs += 1.0 / (labels * (asked + 1))
        return probs

    def learn(self, h: Array, y: int) -> None:
        """Keep that the label of ``h`` (d,) was ``y``."""
        slot = self.seen % len(self.y)
        np.multiply(h, -2.0, out=self.minus_two_h[slot])
        self.square[slot] = h @ h
        self.y[slot] = y
        self.seen += 1

    def _resize(self, dim: int) -> None:
        """Room for vectors of this length: the last events move over, the oldest first."""
        rows = max(1, min(self.window, _ROOM // dim))
        kept = np.arange(max(0, self.seen - min(rows, len(self))), self.seen) % max(1, len(self.y))
        before = self.minus_two_h, self.square, self.y
        self.minus_two_h = np.zeros((rows, dim))
        self.square, self.y = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        self.seen = len(kept)
        self.minus_two_h[: self.seen, : before[0].shape[1]] = before[0][kept]
        self.square[: self.seen], self.y[: self.seen] = before[1][kept], before[2][kept]
