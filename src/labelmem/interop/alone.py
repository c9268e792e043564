"""A classifier without a model: the features themselves are h, and the memory alone decides."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from labelmem.config import MemoryConfig
from labelmem.interop.small_memory import SmallMemory
from labelmem.interop.vectors import Array, softmax
from labelmem.labels import KnownLabels, LabelSpace, plain

__all__ = ["ALONE", "CONSTANT", "Alone", "lift", "lifted"]

ALONE = MemoryConfig(lam=20.0, delta=0.5, margin=4.0, cells_per_label=20)
"""How a memory reads and writes when nothing else decides: sharper, and with cells to spare.

Chosen together with :data:`CONSTANT` by climbing over some seventy settings on eight
streams that ``benchmarks/river_streams.py`` leaves out: digits, wine, iris and cancer of
scikit-learn, and river's RandomRBF (two others), Waveform and LED. The optimum is flat: a step to
either side costs at most one point of accuracy, mean over the eight.
"""

CONSTANT = 0.7
"""What is put before the features, whose root mean square is about one."""


def lifted(x: Array, features: int) -> Array:
    """Features (..., d), standardised as a rule, as vectors h (..., 1 + d) to be compared.

    The memory compares directions, and two vectors of one direction may be far apart. A constant
    put before the features gives every point a direction of its own. Dividing by the root of the
    number of features keeps the two in proportion.

    Parameters
    ----------
    features
        How many of the d are known; the others are zero.

    Examples
    --------
    >>> lifted(np.array([2.0, 0.0, 4.0, 0.0]), features=4)
    array([0.7, 1. , 0. , 2. , 0. ])
    """
    h = np.zeros((*x.shape[:-1], 1 + x.shape[-1]))
    h[..., 1:] = x
    return lift(h, features)


def lift(h: Array, features: int) -> Array:
    """:func:`lifted` in place, for features that have left the first place of ``h`` free."""
    h /= max(1, features) ** 0.5
    h[..., 0] = CONSTANT
    return h


class Alone:
    """One stream whose memory is all there is: P = s.

    Examples
    --------
    >>> alone = Alone(ALONE, dim=2)
    >>> alone.learn(np.array([1.0, 0.0]), "left")
    >>> alone.learn(np.array([0.0, 1.0]), "right")
    >>> alone.probs(np.array([[1.0, 0.1]])).round(3)
    array([[1., 0.]])
    """

    def __init__(self, memory: MemoryConfig, dim: int) -> None:
        self.memory = SmallMemory(memory, dim)
        self.space = LabelSpace(KnownLabels(()))

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; those of the past are zero there."""
        self.memory.widen(dim)

    def scores(self, h: Array) -> Array:
        """Logarithms (L,) of the probabilities for one h (d,), up to a constant."""
        # A new label is always written, so that all of them have their place.
        return self.memory.look(h)[0]

    def read(self, h: Array) -> Array:
        """Probabilities (L,) of the labels of ``space`` for one h (d,). Changes nothing."""
        return softmax(self.scores(h)) if len(self.space) else np.zeros(0)

    def guess(self, h: Array) -> Any:
        """The most probable label for one h (d,), None while none is known. Changes nothing."""
        return self.space.name(int(self.scores(h).argmax())) if len(self.space) else None

    def probs(self, h: Array) -> Array:
        """The same (n, L) for each h (n, d)."""
        return np.stack([self.read(row) for row in h])

    def learn(self, h: Array, y: Hashable) -> None:
        """Learn that the label of h (d,) is ``y``, which may be new."""
        self.memory.learn(h, self.space.add(plain(y)))
