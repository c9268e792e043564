"""The labeled memory of one stream in plain numpy, for a few hundred cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from labelmem.config import MemoryConfig

__all__ = ["Array", "SmallMemory", "softmax"]

Array = npt.NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny  # a weight that decayed to zero counts for next to nothing
_NEVER = -1e300  # finite, so that a label without cells makes no difference of infinities


class SmallMemory:
    """What :class:`labelmem.LabeledMemory` does, for one stream and without torch.

    Peers that take one event at a time spend their microseconds on calls, not on arithmetic, and a
    call of numpy costs a fraction of one of torch. The rules are the same, cell by cell. All labels
    have room for as many cells as the richest of them, so that a read is a handful of calls
    whatever the number of labels.

    Parameters
    ----------
    config
        How to read, write and forget.
    dim
        Length of the stored vectors; :meth:`widen` makes it larger.

    Examples
    --------
    >>> memory = SmallMemory(MemoryConfig(), dim=2)
    >>> memory.write(np.array([1.0, 0.0]), 0, np.zeros(0))
    True
    >>> memory.write(np.array([0.0, 1.0]), 1, np.ones(1))
    True
    >>> memory.read(np.array([0.9, 0.1])).argmax()
    np.int64(0)

    References
    ----------
    Labeled Memory Networks (AAAI 2018), Eq. 2 and 3 and the write algorithm.
    """

    def __init__(self, config: MemoryConfig, dim: int) -> None:
        self.config = config
        self.time = 0
        self.held = 0
        self.count = np.zeros(0, dtype=np.int64)  # cells of each label; they come first in its row
        # Alpha and v side by side: one product weighs both. Beside them v over its length.
        self.cells = np.zeros((0, 0, 1 + dim))
        self.unit = np.zeros((0, 0, dim))
        self.void = np.zeros((0, 0))  # added to scores, it hides the places that hold no cell
        self.written = np.zeros((0, 0), dtype=np.int64)
        self.born = np.zeros((0, 0), dtype=np.int64)

    def __len__(self) -> int:
        return self.held

    @property
    def labels(self) -> int:
        """How many labels there are; they are the numbers below this one."""
        return len(self.count)

    @property
    def alpha(self) -> Array:
        """Weights of the cells (labels, cells), a view."""
        return self.cells[:, :, 0]

    @property
    def v(self) -> Array:
        """Vectors of the cells (labels, cells, dim), a view."""
        return self.cells[:, :, 1:]

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; what is stored is zero there, no cosine changes."""
        more = dim - self.unit.shape[2]
        if more > 0:
            self.cells = np.pad(self.cells, ((0, 0), (0, 0), (0, more)))
            self.unit = np.pad(self.unit, ((0, 0), (0, 0), (0, more)))

    def read(self, h: Array) -> Array:
        """Eq. 2 and 3: s (L,) for ``h`` (d,); zeros while nothing is stored."""
        return softmax(self.scores(h)) if self.held else np.zeros(self.labels)

    def scores(self, h: Array) -> Array:
        """Logarithms (L,) of the scores behind s; where there is no cell, as good as none."""
        return self._scores(*self._weights(h))

    def _weights(self, h: Array) -> tuple[Array, Array]:
        """``h`` at length lam, and the cells' weights (L, T), not yet divided by their sums."""
        L, T, d = self.unit.shape
        g = h * (self.config.lam / _length(h))
        e = (self.unit.reshape(L * T, d) @ g).reshape(L, T)
        e += self.void
        e -= np.maximum.reduce(e, axis=1, keepdims=True)
        return g, np.exp(e, out=e)

    def _scores(self, g: Array, e: Array) -> Array:
        # The cosine with M does not feel what M is divided by.
        total = np.matmul(e[:, None], self.cells)[:, 0]
        M = total[:, 1:]
        score: Array = (M @ g) / _lengths(M)
        if self.config.delta:
            alpha = total[:, 0] / np.add.reduce(e, axis=1)
            score += self.config.delta * np.log(np.maximum(alpha, _TINY))
        score += self.void[:, 0]  # a label without cells has no first one
        return score

    def write(self, h: Array, y: int, P: Array) -> bool:
        """Learn that the label of ``h`` (d,) was ``y`` after predicting ``P`` (W,).

        A label may be new: the next number.

        Returns
        -------
        written
            Whether the margin was missed.
        """
        return self._write(h, y, P, None)

    def learn(self, h: Array, y: int) -> bool:
        """:meth:`write` after the prediction of :meth:`read`, looking at the cells only once."""
        if not self.held:
            return self._write(h, y, np.zeros(self.labels), None)
        g, e = self._weights(h)
        return self._write(h, y, softmax(self._scores(g, e)), e)

    def _write(self, h: Array, y: int, P: Array, e: Array | None) -> bool:
        self.time += 1
        loss, wrong = _margin_loss(P, y, self.config.margin)
        if loss <= 0:
            return False
        while y >= self.labels:
            self._grow(labels=1)
        count = int(self.count[y])
        if count == 0:  # rule 2
            if self._full:
                self._evict()
            self._place(y, 0, h)
            return True
        weakest = int(self.cells[y, :count, 0].argmin())  # rule 3, before anything changes
        self._merge(y, count, h, e if self.config.write_lam else None)
        if wrong:  # rule 4
            limit = self.config.cells_per_label
            if (limit is None or count < limit) and not self._full:
                self._place(y, count, h)
            elif count > 1:
                self._place(y, weakest, h)
        return True

    def _merge(self, y: int, count: int, h: Array, e: Array | None) -> None:
        """Rule 3: every cell of the label takes its share, that of the read where it is known."""
        own, alpha = self.cells[y, :count, 1:], self.cells[y, :count, 0]
        if e is None:
            lam = self.config.lam if self.config.write_lam else 1.0
            w = softmax(self.unit[y, :count] @ h * (lam / _length(h)))
        else:
            w = e[y, :count] / np.add.reduce(e[y, :count])
        own += w[:, None] * h
        alpha *= self.config.decay
        alpha += w
        np.divide(own, _lengths(own)[:, None], out=self.unit[y, :count])
        self.written[y, :count] = self.time

    def _place(self, y: int, slot: int, h: Array) -> None:
        """Put the cell (y, h, 1) where there is none, or over one, whose age it takes on."""
        if slot >= self.cells.shape[1]:
            self._grow(cells=1)
        self.cells[y, slot, 0], self.cells[y, slot, 1:] = 1.0, h
        self.unit[y, slot] = h / _length(h)
        self.written[y, slot] = self.time
        if slot == self.count[y]:
            self.count[y] += 1
            self.held += 1
            self.void[y, slot], self.born[y, slot] = 0.0, self.time

    @property
    def _full(self) -> bool:
        return self.config.capacity is not None and self.held >= self.config.capacity

    def _evict(self) -> None:
        """Rule 5: the cell that counts for least gives up its place."""
        cells = np.argwhere(self.void == 0.0)
        at = tuple(cells.T)
        oldest = (self.written[at],) if self.config.evict == "oldest" else ()
        # The last key of a sort by several counts most.
        y, slot = cells[np.lexsort((self.born[at], self.alpha[at], *oldest))[0]]
        last = int(self.count[y]) - 1
        parts: tuple[npt.NDArray[Any], ...]
        parts = (self.cells, self.unit, self.written, self.born)
        for part in parts:
            part[y, slot:last] = part[y, slot + 1 : last + 1]
        self.count[y] = last
        self.cells[y, last], self.unit[y, last], self.void[y, last] = 0.0, 0.0, _NEVER
        self.held -= 1

    def _grow(self, labels: int = 0, cells: int = 0) -> None:
        """Make room for more labels, or for more cells of each."""
        more = ((0, labels), (0, cells))
        self.count = np.pad(self.count, more[0])
        self.cells = np.pad(self.cells, (*more, (0, 0)))
        self.unit = np.pad(self.unit, (*more, (0, 0)))
        self.written, self.born = np.pad(self.written, more), np.pad(self.born, more)
        self.void = np.pad(self.void, more, constant_values=_NEVER)


def _length(h: Array) -> float:
    """Length of one vector; one for a zero vector, so that its cosines are zero."""
    return math.sqrt(float(h @ h)) or 1.0


def _lengths(x: Array) -> Any:
    """The same for vectors (n, d)."""
    size = np.sqrt(np.add.reduce(x * x, axis=1))
    return size + (size == 0)


def softmax(x: Array) -> Array:
    """Of one vector. The reductions are called by their own names: it takes half the time."""
    e: Array = np.exp(x - np.maximum.reduce(x))
    e /= np.add.reduce(e)
    return e


def _margin_loss(P: Array, y: int, margin: float) -> tuple[float, bool]:
    """Rule 1: the loss, and whether another label was ahead; P(y) is 0 for a label beyond P."""
    p_y = float(P[y]) if y < len(P) else 0.0
    others = P.copy()
    others[y : y + 1] = 0.0
    best = float(np.maximum.reduce(others, initial=0.0))
    if p_y == 0:
        return math.inf, p_y < best
    if best == 0:  # no margin is that wide, except one without bounds
        return (math.inf if margin == math.inf else 0.0), False
    return margin - (math.log(p_y) - math.log(best)), p_y < best
