"""The labeled memory of one stream in plain numpy, for a few hundred cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from labelmem.config import MemoryConfig
from labelmem.interop.vectors import Array, length, softmax

__all__ = ["Array", "Look", "SmallMemory"]

Look = tuple[Array, Array, Array]
"""What a read finds: see :meth:`SmallMemory.look`."""

_TINY = np.finfo(np.float64).tiny  # a weight that decayed to zero counts for next to nothing
_NEVER = -1e300  # finite, so that a label without cells makes no difference of infinities
_NO_LENGTH = 1e-200  # added to a squared length, so that the cosines of a zero vector are zero
_STEEP = 50.0  # exponentials of numbers up to this are far from the largest and smallest there are


class SmallMemory:
    """What :class:`labelmem.LabeledMemory` does, for one stream and without torch.

    Peers that take one event at a time spend their microseconds on calls, not on arithmetic, and a
    call of numpy costs a fraction of one of torch. The rules are the same, cell by cell. All labels
    have room for as many cells as the richest of them, so that a read is a handful of calls
    whatever the number of labels. Places without a cell are zero, and add nothing to any sum.

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
        self.count: list[int] = []  # cells of each label; they come first in its row
        self.written: list[int] = []  # a write changes all cells of its label
        # A one, alpha and v side by side: a product with weights sums these, and weighs the others.
        self.cells = np.zeros((0, 0, 2 + dim))
        self.length = np.zeros((0, 0))  # of v
        self.born = np.zeros((0, 0), dtype=np.int64)
        # A product of this with the squares of a cell is the squared length of its v.
        self._of_v = np.append([_NO_LENGTH, 0.0], np.ones(dim))

    def __len__(self) -> int:
        return self.held

    @property
    def labels(self) -> int:
        """How many labels there are; they are the numbers below this one."""
        return len(self.count)

    @property
    def alpha(self) -> Array:
        """Weights of the cells (labels, cells), a view."""
        return self.cells[:, :, 1]

    @property
    def v(self) -> Array:
        """Vectors of the cells (labels, cells, dim), a view."""
        return self.cells[:, :, 2:]

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; what is stored is zero there, no cosine changes."""
        more = dim - self.v.shape[2]
        if more > 0:
            self.cells = np.pad(self.cells, ((0, 0), (0, 0), (0, more)))
            self._of_v = np.append(self._of_v, np.ones(more))

    def read(self, h: Array) -> Array:
        """Eq. 2 and 3: s (L,) for ``h`` (d,); zeros while nothing is stored."""
        return softmax(self.look(h)[0]) if self.held else np.zeros(self.labels)

    def look(self, h: Array) -> Look:
        """What a read finds for ``h`` (d,): all that :meth:`learn` needs to know of it.

        Returns
        -------
        scores
            Logarithms (L,) of the scores behind s; where there is no cell, as good as none.
        weights, sums
            Of the cells (L, T), not yet divided by their sums (L,).
        """
        L, T, width = self.cells.shape
        lam, g = self.config.lam, np.zeros(width)
        np.multiply(h, lam / length(h), out=g[2:])
        e = self.cells.reshape(L * T, width).dot(g).reshape(L, T)
        e /= self.length
        if lam > _STEEP:  # else what the exponents have in common may stay
            e[self.cells[:, :, 0] == 0] = -math.inf
            e -= np.maximum.reduce(e, axis=1, keepdims=True, initial=-lam)
        np.exp(e, out=e)
        # The cosine with M does not feel what M is divided by.
        M = np.matmul(e[:, None], self.cells)[:, 0]
        empty = np.equal(self.count, 0) if 0 in self.count else None
        if empty is not None:
            M[empty, 0] = 1.0
        scores: Array = M.dot(g)
        scores /= np.sqrt((M * M).dot(self._of_v))
        if self.config.delta:
            scores += self.config.delta * np.log(np.maximum(M[:, 1] / M[:, 0], _TINY))
        if empty is not None:
            scores[empty] = _NEVER
        return scores, e, M[:, 0]

    def write(self, h: Array, y: int, P: Array) -> bool:
        """Learn that the label of ``h`` (d,) was ``y`` after predicting ``P`` (W,).

        A label may be new: the next number.

        Returns
        -------
        written
            Whether the margin was missed.
        """
        return self._write(h, y, *_margin_loss(P, y, self.config.margin), None)

    def learn(self, h: Array, y: int, look: Look | None = None) -> bool:
        """:meth:`write` after the prediction of :meth:`read`, looking at the cells only once.

        Parameters
        ----------
        look
            What :meth:`look` found for ``h``, if it was asked since the last write.
        """
        look = look or self.look(h)
        # Two logarithms of s differ as the two scores do.
        others = look[0].tolist()
        own = others[y] if y < len(others) else -math.inf
        del others[y : y + 1]
        best = max(others, default=_NEVER)
        return self._write(h, y, self.config.margin - (own - best), own < best, look)

    def _write(self, h: Array, y: int, loss: float, wrong: bool, look: Look | None) -> bool:
        self.time += 1
        if loss <= 0:
            return False
        while y >= self.labels:
            self._grow(labels=1)
        cell = np.zeros(2 + len(h))
        cell[1], cell[2:] = 1.0, h
        if self.count[y] == 0:  # rule 2
            if self._full:
                self._evict()
            self._place(y, 0, cell)
            return True
        slot = self._slot(y) if wrong else None
        self._merge(y, cell, look if self.config.write_lam else None)
        if slot is not None:
            self._place(y, slot, cell)
        return True

    def _slot(self, y: int) -> int | None:
        """Rule 4: where a new cell goes, decided before anything changes."""
        count, limit = self.count[y], self.config.cells_per_label
        if (limit is None or count < limit) and not self._full:
            return count
        return int(self.cells[y, :count, 1].argmin()) if count > 1 else None

    def _merge(self, y: int, cell: Array, look: Look | None) -> None:
        """Rule 3: every cell of the label takes its share, that of the read where it is known."""
        count = self.count[y]
        own, lengths = self.cells[y, :count], self.length[y, :count]
        alpha = own[:, 1]
        if look is None:
            lam, h = self.config.lam if self.config.write_lam else 1.0, cell[2:]
            w = softmax(own[:, 2:].dot(h) / lengths * (lam / length(h)))
        else:
            w = look[1][y, :count] / look[2][y]
        alpha *= self.config.decay
        own += w[:, None] * cell
        np.sqrt((own * own).dot(self._of_v), out=lengths)
        self.written[y] = self.time

    def _place(self, y: int, slot: int, cell: Array) -> None:
        """Put a cell where there is none, or over one, whose age it takes on."""
        if slot >= self.cells.shape[1]:
            self._grow(cells=1)
        self.cells[y, slot], self.cells[y, slot, 0] = cell, 1.0
        self.length[y, slot] = length(cell[2:])
        self.written[y] = self.time
        if slot == self.count[y]:
            self.count[y] += 1
            self.held += 1
            self.born[y, slot] = self.time

    @property
    def _full(self) -> bool:
        return self.config.capacity is not None and self.held >= self.config.capacity

    def _evict(self) -> None:
        """Rule 5: the cell that counts for least gives up its place."""
        cells = np.argwhere(self.cells[:, :, 0])
        at = tuple(cells.T)
        oldest = (np.array(self.written)[at[0]],) if self.config.evict == "oldest" else ()
        # The last key of a sort by several counts most.
        y, slot = cells[np.lexsort((self.born[at], self.alpha[at], *oldest))[0]]
        last = self.count[y] - 1
        parts: tuple[npt.NDArray[Any], ...] = self.cells, self.length, self.born
        for part in parts:
            part[y, slot:last] = part[y, slot + 1 : last + 1]
        self.count[y] = last
        self.cells[y, last], self.length[y, last] = 0.0, 1.0
        self.held -= 1

    def _grow(self, labels: int = 0, cells: int = 0) -> None:
        """Make room for more labels, or for more cells of each."""
        L, T, width = self.cells.shape
        room = L + labels, T + cells
        self.count += [0] * labels
        self.written += [0] * labels
        before = self.cells, self.length, self.born  # np.pad is much slower
        self.cells, self.length = np.zeros((*room, width)), np.ones(room)
        self.born = np.zeros(room, dtype=np.int64)
        self.cells[:L, :T], self.length[:L, :T], self.born[:L, :T] = before


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
