"""What was understood of a log, for a person to check before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.logs.grouping import distinct_pairs
from labelmem.logs.log import Log
from labelmem.logs.times import shown
from labelmem.logs.words import counted

__all__ = ["Summary", "first_sights", "summary_of"]


@dataclass(frozen=True)
class Summary:
    """A log in a few numbers."""

    events: int
    users: int
    items: int
    repeats: float
    """The share of events whose item the same user had before: what a memory can know."""
    lone_items: int
    """Items of one user alone: a model trained on others can never know them."""
    single_users: int
    """Users with one event: nothing can be learned for them, or from them about order."""
    median_events: float
    """Of a user."""
    most_events: int
    first: float | None
    """The earliest time, seconds since 1970."""
    last: float | None
    skipped: dict[str, int]
    """Rows that were left out or odd, by kind."""

    def lines(self) -> list[str]:
        """In words."""
        time = "no time column: rows are taken to be in order"
        if self.first is not None and self.last is not None:
            time = f"from {shown(self.first)} to {shown(self.last)}, each user's in order of time"
        size = [counted(self.events, "event"), counted(self.users, "user")]
        return [
            f"{' of '.join(size)} and {counted(self.items, 'item')}; {time}",
            f"events of a user: {self.median_events:g} in the middle, at most "
            f"{self.most_events:,}; users with just one: {self.single_users:,}",
            f"{self.repeats:.0%} of the events repeat an item of the same user",
            f"items that occur with one user alone: {self.lone_items:,}",
        ]


def first_sights(log: Log) -> npt.NDArray[np.bool_]:
    """Which events are the first of their user with their item."""
    pairs = log.user * max(len(log.items), 1) + log.item
    _, first = np.unique(pairs, return_index=True)  # the first of equal ones, in order of time
    mask = np.zeros(len(log), np.bool_)
    mask[first] = True
    return mask


def summary_of(log: Log) -> Summary:
    """Count."""
    lengths = np.diff(log.offsets)
    spread = distinct_pairs(log.user, log.item, len(log.items))
    return Summary(
        events=len(log),
        users=len(lengths),
        items=int((spread > 0).sum()),
        repeats=float(1 - first_sights(log).mean()) if len(log) else 0.0,
        lone_items=int((spread == 1).sum()),
        single_users=int((lengths == 1).sum()),
        median_events=float(np.median(lengths)) if len(lengths) else 0.0,
        most_events=int(lengths.max(initial=0)),
        first=None if log.time is None or not len(log) else float(log.time.min()),
        last=None if log.time is None or not len(log) else float(log.time.max()),
        skipped=dict(log.problems.counts),
    )
