"""The labelled memory, cell by cell: Eq. 2, Eq. 3 and the write rules 1-5."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Label: TypeAlias = Any  # anything hashable


@dataclass(frozen=True)
class OracleConfig:
    """Options of the memory, with the names and defaults of the specification."""

    lam: float = 5.0
    delta: float = 1.0
    margin: float = 1.0
    decay: float = 0.99
    cells_per_label: int | None = 1  # T; None: no limit
    capacity: int | None = None  # N; None: no limit
    write_lam: bool = True
    evict: Literal["oldest", "weight"] = "oldest"

    def __post_init__(self) -> None:
        if self.evict not in ("oldest", "weight"):
            raise ValueError(f"evict is {self.evict!r}; expected 'oldest' or 'weight'")


@dataclass
class Cell:
    """One cell: its label, vector, weight and the time of its last write."""

    label: Label
    v: list[float]
    alpha: float
    written: int


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Cosine of the angle between two vectors; 0 when either norm is 0."""
    dot = 0.0
    square_a = 0.0
    square_b = 0.0
    for x, y in zip(a, b, strict=True):
        dot += x * y
        square_a += x * x
        square_b += y * y
    if square_a == 0.0 or square_b == 0.0:
        return 0.0
    return dot / (math.sqrt(square_a) * math.sqrt(square_b))


def softmax(scores: Sequence[float]) -> list[float]:
    """exp(score) over their sum; the largest is taken off first so that exp cannot overflow."""
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def margin_loss(own: float, other: float, margin: float) -> float:
    """Write rule 1, from P(y) and P(best other label)."""
    if own == 0.0:  # infinite loss; also P without any support
        return math.inf
    if other == 0.0:  # log P(best other label) is minus infinity: no margin is that wide
        return 0.0
    return max(0.0, margin - (math.log(own) - math.log(other)))


class OracleMemory:
    """A list of cells in order of creation; an overwritten cell keeps its position."""

    def __init__(self, config: OracleConfig) -> None:
        self.config = config
        self.cells: list[Cell] = []

    def cells_of(self, y: Label) -> list[Cell]:
        """The cells that label y owns, in list order."""
        return [cell for cell in self.cells if cell.label == y]

    def read_label(self, h: Sequence[float], y: Label) -> tuple[list[float], float]:
        """Eq. 2: the vector M and the weight alpha that label y answers with."""
        cells = self.cells_of(y)
        w = softmax([self.config.lam * cosine(h, cell.v) for cell in cells])
        M = [0.0 for _ in h]
        alpha = 0.0
        for w_m, cell in zip(w, cells, strict=True):
            for i in range(len(M)):
                M[i] += w_m * cell.v[i]
            alpha += w_m * cell.alpha
        return M, alpha

    def read(self, h: Sequence[float]) -> dict[Label, float]:
        """Eq. 3: s over the labels that own cells, in the order of their first cell."""
        exponent: dict[Label, float] = {}
        strength: dict[Label, float] = {}
        for y in dict.fromkeys(cell.label for cell in self.cells):
            M, alpha = self.read_label(h, y)
            exponent[y] = self.config.lam * cosine(h, M)
            strength[y] = alpha**self.config.delta
        top = max(exponent.values(), default=0.0)  # cancels below; keeps exp from overflowing
        score = {y: strength[y] * math.exp(exponent[y] - top) for y in exponent}
        total = sum(score.values())
        return {y: score[y] / total for y in score}

    def write(self, h: Sequence[float], y: Label, P: Mapping[Label, float], t: int) -> str:
        """Write rules 1-5: "none", "create", "merge", "add" or "overwrite".

        "add" and "overwrite" come after the merge that every later write of a label begins with.
        """
        own = P.get(y, 0.0)
        other = max((p for label, p in P.items() if label != y), default=0.0)
        if margin_loss(own, other, self.config.margin) == 0.0:  # rule 1
            return "none"
        new = Cell(y, [float(x) for x in h], 1.0, t)
        if not self.cells_of(y):  # rule 2
            self._make_room()
            self.cells.append(new)
            return "create"
        j = self._position_of_smallest(y)  # rule 3: before anything changes
        self._merge(h, y, t)
        if own < other:  # rule 4: the prediction was wrong
            return self._keep_apart(new, j)
        return "merge"

    def _position_of_smallest(self, y: Label) -> int:
        """Position in the list of y's cell of smallest alpha; ties: the lowest."""
        positions = [i for i, cell in enumerate(self.cells) if cell.label == y]
        smallest = positions[0]
        for i in positions:
            if self.cells[i].alpha < self.cells[smallest].alpha:
                smallest = i
        return smallest

    def _merge(self, h: Sequence[float], y: Label, t: int) -> None:
        """Rule 3: every cell of y takes its share of h; no other cell is touched."""
        lam = self.config.lam if self.config.write_lam else 1.0
        cells = self.cells_of(y)
        w = softmax([lam * cosine(h, cell.v) for cell in cells])
        for w_m, cell in zip(w, cells, strict=True):
            for i in range(len(cell.v)):
                cell.v[i] += w_m * h[i]
            cell.alpha = self.config.decay * cell.alpha + w_m
            cell.written = t

    def _keep_apart(self, new: Cell, j: int) -> str:
        """Rule 4: a wrong prediction adds a cell, or overwrites the one at j, or neither."""
        owned = len(self.cells_of(new.label))
        limit = self.config.cells_per_label
        if (limit is None or owned < limit) and not self._at_capacity():
            self.cells.append(new)
            return "add"
        if owned > 1:
            self.cells[j] = new
            return "overwrite"
        return "merge"

    def _at_capacity(self) -> bool:
        return self.config.capacity is not None and len(self.cells) >= self.config.capacity

    def _make_room(self) -> None:
        """Rule 5: evict one cell if the stream is at capacity."""
        if not self._at_capacity():
            return
        victim = 0
        for i in range(1, len(self.cells)):
            if self._goes_before(self.cells[i], self.cells[victim]):
                victim = i
        del self.cells[victim]

    def _goes_before(self, a: Cell, b: Cell) -> bool:
        """Whether a is evicted rather than b, which stands before it in the list."""
        if self.config.evict == "weight":
            return a.alpha < b.alpha
        if a.written != b.written:
            return a.written < b.written
        return a.alpha < b.alpha
