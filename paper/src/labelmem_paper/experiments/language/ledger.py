"""Which cell each word goes into, where that depends on the words and the model alone.

The paper writes where the *mixed* prediction leads by too little, so what is written depends on
what was written before, and every step must wait for the one before it. A gate on the model's own
lead gives up that dependence: all writes of a text are known before the memory is read once, and
the reads of many steps can be done together
(:mod:`labelmem_paper.experiments.language.known_writes`).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Ledger", "Writes"]


@dataclass(frozen=True)
class Writes:
    """What becomes of the words of a passage, one entry for each."""

    place: list[int]
    """The cell that a word is written to; -1 where it is not written."""
    born: list[int]
    """The step of the passage at which the cell was begun for that word; -1 if before."""
    alpha: list[float]
    """The weight of the cell after the write."""
    count: list[int]
    """How often it was written since it was begun for its word, this time included."""
    rates: list[tuple[float, ...]]
    """How often it was written lately: counts that fade with time, some faster than others."""


class Ledger:
    """One cell for each word; the cell that was left alone longest makes room.

    Parameters
    ----------
    capacity
        How many cells there are.
    decay
        Factor on the weight of a cell when it is written again.
    fades
        For each rate, after how many words a write counts as a third (1 / e).
    touch
        Whether a word that comes again without being written keeps its cell from being the oldest.

    Examples
    --------
    >>> ledger = Ledger(capacity=2)
    >>> writes = ledger.advance([7, 7, 8, 9, 9], [True, True, True, True, False])
    >>> writes.place, writes.born, writes.alpha
    ([0, 0, 1, 0, -1], [0, 0, 2, 3, -1], [1.0, 1.99, 1.0, 1.0, 0.0])
    """

    def __init__(
        self,
        capacity: int,
        decay: float = 0.99,
        fades: Sequence[float] = (),
        touch: bool = False,
    ) -> None:
        self.capacity, self.decay, self.fades, self.touch = capacity, decay, tuple(fades), touch
        self._nowhere = _Cell(-1, -1, 0.0, 0, (0.0,) * len(fades), 0)
        self._cells: OrderedDict[int, _Cell] = OrderedDict()
        self._time = 0

    def advance(self, words: Sequence[int], write: Sequence[bool]) -> Writes:
        """Enter the words of the next passage."""
        found, start = Writes([], [], [], [], []), self._time
        for word, now in zip(words, write, strict=True):
            cell = self._written(word) if now else self._nowhere
            if not now and self.touch and word in self._cells:
                self._cells.move_to_end(word)
            found.place.append(cell.place)
            found.born.append(max(cell.born - start, -1))
            found.alpha.append(cell.alpha)
            found.count.append(cell.writes)
            found.rates.append(cell.rates)
            self._time += 1
        return found

    def _written(self, word: int) -> _Cell:
        cells, time = self._cells, self._time
        if word in cells:
            old = cells.pop(word)
            gone = old.time - time
            rates = tuple(
                1 + rate * math.exp(gone / fade)
                for rate, fade in zip(old.rates, self.fades, strict=True)
            )
            cell = _Cell(
                old.place, old.born, self.decay * old.alpha + 1, old.writes + 1, rates, time
            )
        else:
            full = len(cells) == self.capacity
            place = cells.popitem(last=False)[1].place if full else len(cells)
            cell = _Cell(place, time, 1.0, 1, (1.0,) * len(self.fades), time)
        cells[word] = cell
        return cell


class _Cell(NamedTuple):
    """What the ledger knows of a cell."""

    place: int
    born: int
    alpha: float
    writes: int
    rates: tuple[float, ...]
    time: int
