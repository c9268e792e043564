"""Classifiers without a model: the memory alone, or with two plain helpers beside it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError
from labelmem.interop.moments import Moments
from labelmem.interop.recent import Recent
from labelmem.interop.small_memory import Look, SmallMemory
from labelmem.interop.vectors import Array, softmax
from labelmem.labels import KnownLabels, LabelSpace, plain

__all__ = ["ALONE", "CONSTANT", "TOGETHER", "Alone", "Together", "lifted", "without_a_model"]

ALONE = MemoryConfig(lam=20.0, delta=0.5, margin=4.0, cells_per_label=20)
"""How a memory reads and writes when nothing else decides: sharper, and with cells to spare.

Chosen together with :data:`CONSTANT` by climbing over some seventy settings on eight
streams that ``benchmarks/river_streams.py`` leaves out: digits, wine, iris and cancer of
scikit-learn, and river's RandomRBF (two others), Waveform and LED. The optimum is flat: a step to
either side costs at most one point of accuracy, mean over the eight.
"""

CONSTANT = 0.7
"""What is put before the features, whose root mean square is about one."""

TOGETHER = MemoryConfig(lam=20.0, delta=0.0, margin=2.0, cells_per_label=20)
"""How a memory reads and writes beside helpers: how common a label is, the moments say already.

Chosen together with the helpers, what is believed at first and how fast that changes, among about
a hundred settings on 23 streams that ``benchmarks/river_streams.py`` leaves out: river's generators
with other seeds, and scikit-learn's digits, wine, iris, cancer, moons, circles and made-up ones.
The optimum is flat: a step to either side costs about a third of a point of accuracy at most, mean
over all.
"""

_FIRST = (0.3, 0.3, 0.6)  # believed before anything is known: moments, memory, recent events
_RATE = 0.02  # how fast that changes with a label
_LEAST = -6.0  # no label is further behind the best one than this, in nats, in any opinion
_OFTEN, _SELDOM = 200, 8  # all the first events teach what to believe, then one in so many


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
    h = np.full((*x.shape[:-1], 1 + x.shape[-1]), CONSTANT)
    h[..., 1:] = x / max(1, features) ** 0.5
    return h


def without_a_model(memory: MemoryConfig | None, dim: int, window: int) -> Alone:
    """The memory with its helpers, or alone where no event is to be kept.

    Raises
    ------
    ConfigError
        If the window is negative.
    """
    if window < 0:
        raise ConfigError(f"window is {window}; expected a number of events, or 0 for none")
    return Together(memory or TOGETHER, dim, window) if window else Alone(memory or ALONE, dim)


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

    def probs(self, h: Array) -> Array:
        """The same (n, L) for each h (n, d)."""
        return np.stack([self.read(row) for row in h])

    def learn(self, h: Array, y: Hashable) -> None:
        """Learn that the label of h (d,) is ``y``, which may be new."""
        self.memory.learn(h, self.space.add(plain(y)))


class Together(Alone):
    """One stream of which three keep what they can: moments, memory, and the last events.

    Each is at its best elsewhere. Mean and variance of every label need few events and do not mind
    features that say nothing; the memory knows many places of a label, and old ones; the last
    events follow any border and any drift. What they say is pooled: ``log P`` is the sum of their
    logarithms, each times how far it is believed, up to a constant. Unlike the mixture of Eq. 5
    this lets two who hesitate agree, and it mends one who is always too sure.

    What is believed follows the gradient of ``log P(y)``. It changes slowly: once it has settled,
    one event in eight is enough, and learning is a good deal cheaper.

    The memory writes by its own margin, as if it were alone. Were it spared what the others know
    already, it would be of no use when they are no longer believed.

    Parameters
    ----------
    memory
        How the memory reads and writes.
    dim
        Length of the vectors h, see :func:`lifted`.
    window
        How many of the last events are kept.

    Examples
    --------
    >>> together = Together(TOGETHER, dim=2, window=100)
    >>> for x in (1.0, 0.9, 1.1, 0.8):
    ...     together.learn(np.array([0.7, x]), "right")
    ...     together.learn(np.array([0.7, -x]), "left")
    >>> together.probs(np.array([[0.7, 1.0], [0.7, -1.0]])).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, memory: MemoryConfig, dim: int, window: int) -> None:
        super().__init__(memory, dim)
        self.moments = Moments(dim)
        self.recent = Recent(window, dim)
        self.belief = np.array(_FIRST)

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; those of the past are zero there."""
        super().widen(dim)
        self.moments.widen(dim)
        self.recent.widen(dim)

    def scores(self, h: Array) -> Array:
        """Logarithms (L,) of the probabilities for one h (d,), up to a constant."""
        scores: Array = self.belief.dot(self.opinions(h, self.memory.look(h)))
        return scores

    def learn(self, h: Array, y: Hashable) -> None:
        """Learn that the label of h (d,) is ``y``, which may be new."""
        known, time = len(self.space), self.memory.time
        index, look = self.space.add(plain(y)), self.memory.look(h)
        if index < known and (time < _OFTEN or time % _SELDOM == 0):
            self._believe(self.opinions(h, look), index)
        self.memory.learn(h, index, look)
        self.moments.learn(h, index)
        self.recent.learn(h, index)

    def opinions(self, h: Array, look: Look) -> Array:
        """Logarithms (3, L) of what moments, memory and recent events say, the best label at 0.

        Parameters
        ----------
        look
            What the memory found for ``h``.
        """
        scores = look[0]
        log = np.empty((3, len(scores)))
        log[0], log[1] = self.moments.scores(h), scores
        np.log(self.recent.read(h, len(scores)), out=log[2])
        log -= np.maximum.reduce(log, axis=1, keepdims=True)
        np.maximum(log, _LEAST, out=log)
        return log

    def _believe(self, opinions: Array, y: int) -> None:
        """A step up the gradient of log P(y); nobody is believed to say the opposite of truth."""
        P = softmax(self.belief.dot(opinions))
        self.belief += _RATE * (opinions[:, y] - opinions.dot(P))
        np.maximum(self.belief, 0.0, out=self.belief)
