"""Where to write names beside marks so that they cover neither each other nor the marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Box", "beside"]

CHARACTER, LINE = 6.8, 12.0
"""About how wide a character and how high a line is, in points."""
MARK = 6.0
"""Half the width of a mark."""


@dataclass(frozen=True)
class Box:
    """A rectangle by its middle and its half sizes, in points."""

    x: float
    y: float
    wide: float
    high: float

    def overlap(self, other: Box) -> float:
        """The area that both cover.

        Examples
        --------
        >>> Box(0, 0, 2, 1).overlap(Box(3, 0, 2, 1))
        2.0
        """
        across = min(self.x + self.wide, other.x + other.wide)
        across -= max(self.x - self.wide, other.x - other.wide)
        along = min(self.y + self.high, other.y + other.high)
        along -= max(self.y - self.high, other.y - other.high)
        return float(max(0, across) * max(0, along))

    @property
    def area(self) -> float:
        """What it covers."""
        return 4 * self.wide * self.high


def beside(
    marks: Sequence[tuple[float, float]], names: Sequence[str], frame: tuple[float, float]
) -> list[Box]:
    """Choose a place for each name, one after another; the middle of each box is the text's.

    Parameters
    ----------
    marks
        Where the marks are, in points from the lower left corner.
    names
        What is written beside them; give the important ones first.
    frame
        Width and height of the plot.

    Examples
    --------
    >>> [(box.x > 50, box.y == 50) for box in beside([(50, 50)], ["a"], (100, 100))]
    [(True, True)]
    """
    inside = Box(frame[0] / 2, frame[1] / 2, frame[0] / 2, frame[1] / 2)
    taken = [Box(x, y, MARK, MARK) for x, y in marks]
    placed: list[Box] = []
    for (x, y), name in zip(marks, names, strict=True):
        options = _places(x, y, len(name) * CHARACTER / 2)
        costs = [(far + _covered(box, inside, [*taken, *placed]), box) for far, box in options]
        placed.append(min(costs, key=lambda option: option[0])[1])
    return placed


def _covered(box: Box, inside: Box, others: Sequence[Box]) -> float:
    """How much of a box is not free, or outside."""
    outside = box.area - box.overlap(inside)
    return outside + sum(box.overlap(other) for other in others)


def _places(x: float, y: float, wide: float) -> Iterator[tuple[float, Box]]:
    """Places around a mark, each with its price in covered area: beside it is free."""
    side, high = MARK + 4 + wide, LINE / 2
    yield 0, Box(x + side, y, wide, high)
    yield 0, Box(x - side, y, wide, high)
    for step in range(3):
        above = MARK + high + 1 + step * LINE
        for dx in (0, wide / 2, -wide / 2, side, -side):
            for dy in (above, -above):
                yield 10 + 30 * step + abs(dx) / 4, Box(x + dx, y + dy, wide, high)
