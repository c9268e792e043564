"""Options of the approximate index over a large memory, checked once when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labelmem.errors import ConfigError

__all__ = ["IndexConfig"]


@dataclass(frozen=True)
class IndexConfig:
    """How a large memory is read in part: the cells near h, not all of them.

    Cells lie in lists, each about a centre. A read looks at the lists whose centres are nearest to
    h by cosine, and is the exact read of a memory that holds their cells only: a label none of
    whose cells is looked at has s = 0, and a label's M is made of those that are.

    Examples
    --------
    >>> IndexConfig(probes=8).lists_for(1_000_000)
    1000
    >>> IndexConfig(lists=100, probes=200)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: probes is 200, lists is 100; there are not so many to look at
    """

    lists: int | None = None
    """How many lists there are; None takes the square root of the number of cells."""
    probes: int = 16
    """How many of them a read looks at: more are slower and closer to the exact read."""
    least: int = 50_000
    """Cells below which every read is exact."""

    def __post_init__(self) -> None:
        for name in ("lists", "probes", "least"):
            value = getattr(self, name)
            if name == "lists" and value is None:
                continue
            if type(value) is not int or value < 1:
                or_none = ", or None" if name == "lists" else ""
                raise ConfigError(f"{name} is {value!r}; it must be a whole number from 1{or_none}")
        if self.lists is not None and self.probes > self.lists:
            raise ConfigError(
                f"probes is {self.probes}, lists is {self.lists}; there are not so many to look at"
            )
        if self.lists is not None and self.lists > self.least:
            raise ConfigError(
                f"lists is {self.lists}, least is {self.least}; there must be a cell for each list "
                "when the lists are made"
            )

    def lists_for(self, cells: int) -> int:
        """How many lists that many cells are put in."""
        return self.lists or max(1, round(math.sqrt(cells)))

    def renews(self, cells: int) -> bool:
        """Whether the centres are found anew when a memory has grown to so many cells.

        That is so at ``least`` and at each doubling of it: what was cells apart when there were few
        is one crowded list when there are many.

        Examples
        --------
        >>> [cells for cells in range(100, 1000) if IndexConfig(least=100).renews(cells)]
        [100, 200, 400, 800]
        """
        times, rest = divmod(cells, self.least)
        return rest == 0 and times > 0 and times & (times - 1) == 0
