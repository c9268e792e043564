"""The last events as they were, and the votes of those nearest."""

from __future__ import annotations

import math

import numpy as np

from labelmem.interop.vectors import Array

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
        # One column for each event: with few features that product is much the faster one.
        self.h = np.zeros((dim, 0))
        self.half_square = np.zeros(0)  # of the length of h; infinite where there is no event
        self.y = np.zeros(0, dtype=np.int64)
        self._resize(dim)

    def __len__(self) -> int:
        return min(self.seen, len(self.y))

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; what is kept is zero there."""
        if dim > len(self.h):
            self._resize(dim)

    def read(self, h: Array, labels: int) -> Array:
        """Probabilities (labels,) for ``h`` (d,), from one event on."""
        far = h.dot(self.h)
        np.subtract(self.half_square, far, out=far)  # half the squared distance, less that of h
        square = float(h.dot(h))
        least = _SAME * square + _TINY
        asked = min(self.seen, len(far), _NEAREST)
        votes, cast = [], 0.0
        for _ in range(asked):  # looking for the smallest five times is faster than a partition
            i = far.argmin()
            distance = math.sqrt(max(2.0 * far.item(i) + square, least))
            votes.append((self.y[i], 1.0 / distance))
            cast += 1.0 / distance
            far[i] = math.inf
        share = asked / (cast * (asked + 1))
        probs = [1.0 / (labels * (asked + 1))] * labels
        for y, vote in votes:
            probs[y] += share * vote
        return np.array(probs)

    def learn(self, h: Array, y: int) -> None:
        """Keep that the label of ``h`` (d,) was ``y``."""
        slot = self.seen % len(self.y)
        self.h[:, slot], self.half_square[slot], self.y[slot] = h, 0.5 * h.dot(h), y
        self.seen += 1

    def _resize(self, dim: int) -> None:
        """Room for vectors of this length: the last events move over, the oldest first."""
        room = max(1, min(self.window, _ROOM // dim))
        kept = np.arange(max(0, self.seen - min(room, len(self))), self.seen) % max(1, len(self.y))
        n, before = len(kept), (self.h, self.half_square, self.y)
        self.h = np.zeros((dim, room))
        self.half_square, self.y = np.full(room, math.inf), np.zeros(room, dtype=np.int64)
        self.h[: len(before[0]), :n] = before[0][:, kept]
        self.half_square[:n], self.y[:n] = before[1][kept], before[2][kept]
        self.seen = n
