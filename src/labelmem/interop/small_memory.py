"""The labeled memory of one stream in plain numpy, for a few hundred cells."""

from __future__ import annotations

import math

import numpy as np

from labelmem.config import MemoryConfig
from labelmem.interop.vectors import Array, length, softmax

__all__ = ["Look", "SmallMemory"]

Look = tuple[Array, Array, Array]
"""What a read finds: see :meth:`SmallMemory.look`."""

_ONE, _ALPHA, _BORN, _V = 0, 1, 2, 3  # what the numbers of a cell are: the last is where v begins
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
    >>> memory.learn(np.array([1.0, 0.0]), 0), memory.learn(np.array([0.0, 1.0]), 1)
    (True, True)
    >>> memory.look(np.array([0.9, 0.1]))[0].argmax()
    np.int64(0)

    References
    ----------
    Labeled Memory Networks (AAAI 2018), Eq. 2 and 3 and the write algorithm.
    """

    def __init__(self, config: MemoryConfig, dim: int) -> None:
        self.config = config
        self.time = 0
        self.count: list[int] = []  # cells of each label; they come first in its row
        self.written: list[int] = []  # a write changes all cells of its label
        # Side by side, so that one product with weights sums these and weighs the others.
        self.cells = np.zeros((0, 0, _V + dim))
        self.length = np.zeros((0, 0))  # of v
        # A product of this with the squares of a cell is the squared length of its v.
        self._of_v = np.append([_NO_LENGTH, 0.0, 0.0], np.ones(dim))

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; what is stored is zero there, no cosine changes."""
        more = dim + _V - self.cells.shape[2]
        if more > 0:
            self.cells = np.pad(self.cells, ((0, 0), (0, 0), (0, more)))
            self._of_v = np.append(self._of_v, np.ones(more))

    def look(self, h: Array) -> Look:
        """Eq. 2 and 3 for ``h`` (d,): all that :meth:`learn` needs to know of a read.

        Returns
        -------
        scores
            Logarithms (L,) of the scores behind s; where there is no cell, as good as none.
        weights, sums
            Of the cells (L, T), not yet divided by their sums (L,).
        """
        L, T, width = self.cells.shape
        lam, g = self.config.lam, np.zeros(width)
        np.multiply(h, lam / length(h), out=g[_V:])
        e = self.cells.reshape(L * T, width).dot(g).reshape(L, T)
        e /= self.length
        if lam > _STEEP:  # else what the exponents have in common may stay
            e[self.cells[:, :, _ONE] == 0] = -math.inf
            e -= np.maximum.reduce(e, axis=1, keepdims=True, initial=-lam)
        np.exp(e, out=e)
        # The cosine with M does not feel what M is divided by.
        M = np.matmul(e[:, None], self.cells)[:, 0]
        empty = np.equal(self.count, 0) if 0 in self.count else None
        if empty is not None:
            M[empty, _ONE] = 1.0
        scores: Array = M.dot(g)
        scores /= np.sqrt((M * M).dot(self._of_v))
        if self.config.delta:
            scores += self.config.delta * np.log(np.maximum(M[:, _ALPHA] / M[:, _ONE], _TINY))
        if empty is not None:
            scores[empty] = _NEVER
        return scores, e, M[:, _ONE]

    def learn(self, h: Array, y: int, look: Look | None = None) -> bool:
        """Write that the label of ``h`` (d,) was ``y``, which may be new: the next number.

        Parameters
        ----------
        look
            What :meth:`look` found for ``h``, if it was asked since the last write.

        Returns
        -------
        written
            Whether the margin was missed (rule 1).
        """
        look = look or self.look(h)
        # Two logarithms of s differ as the two scores do.
        others = look[0].tolist()
        own = others[y] if y < len(others) else -math.inf
        del others[y : y + 1]
        best = max(others, default=_NEVER)
        self.time += 1
        if self.config.margin <= own - best:
            return False
        if y >= len(self.count):
            self._grow(labels=1)
        cell = np.concatenate([[0.0, 1.0, 0.0], h])
        if self.count[y] == 0:  # rule 2
            if self._full:
                self._evict()
            self._place(y, 0, cell)
            return True
        slot = self._slot(y) if own < best else None
        self._merge(y, cell, look)
        if slot is not None:
            self._place(y, slot, cell)
        return True

    def _slot(self, y: int) -> int | None:
        """Rule 4: where a new cell goes, decided before anything changes."""
        count, limit = self.count[y], self.config.cells_per_label
        if (limit is None or count < limit) and not self._full:
            return count
        return int(self.cells[y, :count, _ALPHA].argmin()) if count > 1 else None

    def _merge(self, y: int, cell: Array, look: Look) -> None:
        """Rule 3: every cell of the label takes its share, as a rule that of the read."""
        count = self.count[y]
        own, lengths, h = self.cells[y, :count], self.length[y, :count], cell[_V:]
        if self.config.write_lam:
            w = look[1][y, :count] / look[2][y]
        else:
            w = softmax(own[:, _V:].dot(h) / (lengths * length(h)))
        own[:, _ALPHA] *= self.config.decay
        own += w[:, None] * cell
        np.sqrt((own * own).dot(self._of_v), out=lengths)
        self.written[y] = self.time

    def _place(self, y: int, slot: int, cell: Array) -> None:
        """Put a cell where there is none, or over one, whose age it takes on."""
        if slot >= self.cells.shape[1]:
            self._grow(cells=1)
        born = self.cells[y, slot, _BORN] if slot < self.count[y] else self.time
        self.cells[y, slot] = cell
        self.cells[y, slot, _ONE], self.cells[y, slot, _BORN] = 1.0, born
        self.length[y, slot] = length(cell[_V:])
        self.written[y] = self.time
        self.count[y] = max(self.count[y], slot + 1)

    @property
    def _full(self) -> bool:
        return self.config.capacity is not None and sum(self.count) >= self.config.capacity

    def _evict(self) -> None:
        """Rule 5: the cell that counts for least gives up its place."""
        cells = np.argwhere(self.cells[:, :, _ONE])
        at = tuple(cells.T)
        oldest = (np.array(self.written)[at[0]],) if self.config.evict == "oldest" else ()
        # The last key of a sort by several counts most.
        keys = (self.cells[(*at, _BORN)], self.cells[(*at, _ALPHA)], *oldest)
        y, slot = cells[np.lexsort(keys)[0]]
        for part in (self.cells, self.length):
            part[y, slot:-1] = part[y, slot + 1 :]
        self.cells[y, -1], self.length[y, -1] = 0.0, 1.0
        self.count[y] -= 1

    def _grow(self, labels: int = 0, cells: int = 0) -> None:
        """Make room for more labels, or for more cells of each."""
        L, T, width = self.cells.shape
        room = L + labels, T + cells
        self.count += [0] * labels
        self.written += [0] * labels
        before = self.cells, self.length  # np.pad is much slower
        self.cells, self.length = np.zeros((*room, width)), np.ones(room)
        self.cells[:L, :T], self.length[:L, :T] = before
