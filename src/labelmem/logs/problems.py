"""What is wrong or odd about the rows of a log, and whether to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from labelmem.errors import DataError

__all__ = ["Policy", "Problems"]

Policy = Literal["stop", "skip", "strict"]
"""``stop``: a row that cannot be used is an error; odd rows are counted. ``skip``: rows that cannot
be used are left out and counted. ``strict``: odd rows are errors too."""

_SHOWN = 3  # rows named for each kind of problem
_WIDTH = 60

BAD = {
    "fields": "has another number of fields than the header",
    "json": "holds no JSON object",
    "user": "has no user",
    "item": "has no item",
    "time": "has no readable time",
    "vector": "has no embedding, or one with infinite or missing values",
}
"""Rows that cannot be used."""
ODD = {
    "duplicate": "repeats an event: same user, item and time (left out)",
    "order": "is earlier than a row above of the same user (put in order)",
    "types": "writes a user or an item as another type than the first row (read as text)",
    "late": "is earlier than what the user's state has seen already (left out)",
}
"""Rows that can be used, or left out without loss, but that somebody might want to know of."""


class Problems:
    """Counts problems by kind, and remembers the first rows of each.

    Examples
    --------
    >>> problems = Problems("few.csv", "stop")
    >>> problems.add("item", 7, "42,,12:00")
    >>> problems.settle()
    Traceback (most recent call last):
    labelmem.errors.DataError: few.csv: 1 row has no item (row 7: '42,,12:00'). Mend the file, or
    leave such rows out with --skip-bad
    """

    def __init__(self, path: Path | str, policy: Policy) -> None:
        self.path, self.policy = path, policy
        self.counts: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}

    def add(self, kind: str, row: int, seen: str = "", rows: int = 1) -> None:
        """Note ``rows`` rows, of which this is the first."""
        self.counts[kind] = self.counts.get(kind, 0) + rows
        named = self._first.setdefault(kind, [])
        if len(named) < _SHOWN:
            text = seen if len(seen) <= _WIDTH else seen[:_WIDTH] + "..."
            named.append(f"row {row}: {text!r}" if text else f"row {row}")

    def settle(self) -> None:
        """Raise `DataError` if the policy does not allow what was found."""
        wrong = {} if self.policy == "skip" else BAD
        if self.policy == "strict":
            wrong = {**BAD, **ODD}
        found = [self.sentence(kind) for kind in wrong if kind in self.counts]
        if not found:
            return
        remedy = "leave such rows out with --skip-bad"
        if not any(kind in BAD for kind in self.counts if kind in wrong):
            remedy = "leave --strict out"
        raise DataError(f"{self.path}: {'; '.join(found)}. Mend the file, or {remedy}")

    def sentence(self, kind: str) -> str:
        """One kind of problem in words, with its first rows."""
        count, named = self.counts[kind], self._first[kind]
        verb, what = ({**BAD, **ODD})[kind].split(" ", 1)
        if count > 1:
            verb = {"has": "have", "is": "are"}.get(verb, verb.removesuffix("s"))
        more = f", and {count - len(named):,} more" if count > len(named) else ""
        return f"{count:,} row{'s' * (count > 1)} {verb} {what} ({', '.join(named)}{more})"

    def sentences(self) -> list[str]:
        """All that was found, in words."""
        return [self.sentence(kind) for kind in {**BAD, **ODD} if kind in self.counts]

    @property
    def skipped(self) -> int:
        """Rows that were left out because they cannot be used."""
        return sum(count for kind, count in self.counts.items() if kind in BAD)
