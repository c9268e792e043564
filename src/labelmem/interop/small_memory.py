"""The labeled memory of one stream in plain numpy, for a few hundred cells."""

from __future__ import annotations

import math

import numpy as np

from labelmem.config import MemoryConfig
from labelmem.interop.vectors import Array, length, softmax

__all__ = ["Look", "SmallMemory"]

Look = tuple[Array, Array]
"""What a read finds: see :meth:`SmallMemory.look`."""

_ALPHA, _BORN, _V = 0, 1, 2  # what the numbers of a cell are: the last is where v begins
_TINY = np.finfo(np.float64).tiny  # a weight that decayed to zero counts for next to nothing
_NEVER = -1e300  # finite, so that a label without cells makes no difference of infinities
_NO_LENGTH = 1e-200  # added to a squared length, so that the cosines of a zero vector are zero


class SmallMemory:
    """What :class:`labelmem.LabeledMemory` does, for one stream and without torch.

    Peers that take one event at a time spend their microseconds on calls, not on arithmetic, and a
    call of numpy costs a fraction of one of torch. The rules are the same, cell by cell.

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
        self.written: list[int] = []  # for each label; a write changes all cells of its label
        self.label = np.zeros(0, dtype=np.int64)  # of each cell; cells are sorted by it
        self.cells = np.zeros((0, _V + dim))
        self.length = np.zeros(0)  # of v in each cell

    def widen(self, dim: int) -> None:
        """Make the vectors longer if need be; what is stored is zero there, no cosine changes."""
        more = dim + _V - self.cells.shape[1]
        if more > 0:
            self.cells = np.pad(self.cells, ((0, 0), (0, more)))

    def look(self, h: Array) -> Look:
        """Eq. 2 and 3 for ``h`` (d,): all that :meth:`learn` needs to know of a read.

        Returns
        -------
        scores
            Logarithms (L,) of the scores behind s; where there is no cell, as good as none.
        weights
            Of the cells (C,), not yet divided by their sum over the cells of a label.
        """
        scores = np.full(len(self.written), _NEVER)
        if not len(self.label):
            return scores, np.zeros(0)
        g = h * (self.config.lam / length(h))
        e = self.cells[:, _V:].dot(g) / self.length
        e -= np.maximum.reduceat(e, self._starts)[self._row]
        np.exp(e, out=e)
        # The cosine with M does not feel what M is divided by.
        M = np.add.reduceat(e[:, None] * self.cells, self._starts)
        found = M[:, _V:].dot(g) / _lengths(M)
        if self.config.delta:
            alpha = M[:, _ALPHA] / np.add.reduceat(e, self._starts)
            found += self.config.delta * np.log(np.maximum(alpha, _TINY))
        scores[self._present] = found
        return scores, e

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
        scores, weights = look or self.look(h)
        # Two logarithms of s differ as the two scores do.
        others = scores.tolist()
        own = others[y] if y < len(others) else -math.inf
        del others[y : y + 1]
        best = max(others, default=_NEVER)
        self.time += 1
        if self.config.margin <= own - best:
            return False
        if y >= len(self.written):
            self.written.append(0)
        cell = np.concatenate([[1.0, self.time], h])
        start, end = self.label.searchsorted([y, y + 1]).tolist()
        full = self.config.capacity is not None and len(self.label) >= self.config.capacity
        if start == end:  # rule 2
            if full:
                self._evict()
            self._insert(y, cell)
        else:
            own_cells, limit = self.cells[start:end], self.config.cells_per_label
            # Rule 4: the weakest cell to be replaced is chosen before anything changes.
            weakest = own_cells[own_cells[:, _ALPHA].argmin()]
            self._merge(own_cells, self.length[start:end], weights[start:end], h)
            if own < best and (limit is None or end - start < limit) and not full:
                self._insert(y, cell)
            elif own < best and end - start > 1:
                cell[_BORN] = weakest[_BORN]
                weakest[:] = cell
        self.written[y] = self.time
        self.length = _lengths(self.cells)
        return True

    def _merge(self, own: Array, lengths: Array, weights: Array, h: Array) -> None:
        """Rule 3: every cell of the label takes its share, as a rule that of the read."""
        if self.config.write_lam:
            w = weights / weights.sum()
        else:
            w = softmax(own[:, _V:].dot(h) / (lengths * length(h)))
        own[:, _V:] += w[:, None] * h
        own[:, _ALPHA] *= self.config.decay
        own[:, _ALPHA] += w

    def _insert(self, y: int, cell: Array) -> None:
        """A new cell goes behind the others of its label."""
        end = int(self.label.searchsorted(y, side="right"))
        self.label = np.concatenate([self.label[:end], [y], self.label[end:]])
        self.cells = np.concatenate([self.cells[:end], [cell], self.cells[end:]])
        counts = np.bincount(self.label)
        # The labels that have cells, where theirs begin, and whose each cell is among them.
        self._present = counts.nonzero()[0]
        self._starts = (counts.cumsum() - counts)[self._present]
        self._row = (counts > 0).cumsum()[self.label] - 1

    def _evict(self) -> None:
        """Rule 5: the cell that counts for least gives up its place."""
        oldest = [np.array(self.written)[self.label]] if self.config.evict == "oldest" else []
        # The last key of a sort by several counts most.
        i = np.lexsort([self.cells[:, _BORN], self.cells[:, _ALPHA], *oldest])[0]
        self.label, self.cells = np.delete(self.label, i), np.delete(self.cells, i, axis=0)


def _lengths(cells: Array) -> Array:
    """The lengths of v in all cells."""
    v = cells[:, _V:]
    found: Array = np.sqrt(np.einsum("ij,ij->i", v, v) + _NO_LENGTH)
    return found
