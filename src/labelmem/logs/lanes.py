"""Users of a log side by side, with the numbers that items have in each one's own stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.logs.log import Log
from labelmem.logs.states import Kept

__all__ = ["Lane", "Piece", "plan"]

Integers = npt.NDArray[np.int64]
_LEFT = 0.7  # the share of users below which a piece ends, so that few rows are carried along idle


@dataclass(frozen=True)
class Piece:
    """Some users and a stretch of their events: what is predicted, written and kept at once."""

    users: Integers
    """Their numbers in the log."""
    first: int
    """The stretch, counted from each user's first event that is news."""
    stop: int


def plan(log: Log, abreast: int, steps: int) -> list[Piece]:
    """Cut a log into pieces, users with like numbers of events together.

    It depends on the log alone and not on any state, so that a run that was killed finds the pieces
    it had. Who has no event left is not in the next piece.

    Parameters
    ----------
    abreast
        The most users of a piece.
    steps
        The most events of each.
    """
    lengths = np.diff(log.offsets)
    order = np.argsort(-lengths, kind="stable")
    pieces = []
    for start in range(0, len(order), abreast):
        users, first = order[start : start + abreast], 0
        while len(users):
            left = lengths[users]  # most first
            stop = max(int(left[int(_LEFT * (len(users) - 1))]), first + 1)
            stop = min(stop, first + steps)
            pieces.append(Piece(users, first, stop))
            users, first = users[left > stop], stop
    return pieces


class Lane:
    """The users of a piece, from what is kept of them before it.

    Parameters
    ----------
    known
        For each of the log's items its number in the model, -1 for one that it does not know.
    labels
        How many the model knows.
    kept
        What is kept of those users who are not new. In a piece that is not their first, it includes
        the pieces before. In the first, the log is new to them, and events that are earlier than
        what a user's state has seen are passed over.
    """

    def __init__(
        self, log: Log, piece: Piece, known: Integers, labels: int, kept: Mapping[str, Kept]
    ) -> None:
        self.log, self.labels, users = log, labels, piece.users
        self.names = [log.users[user] for user in users]
        self.kept = [kept.get(name) for name in self.names]
        begin, end = log.offsets[users], log.offsets[users + 1]
        self.passed = [
            self._passed(known, int(a), int(b), past, piece.first > 0)
            for a, b, past in zip(begin, end, self.kept, strict=True)
        ]
        """Events at the front of each user's part that are no news."""
        self.start = begin + np.array(self.passed, np.int64) + piece.first
        self.lengths = np.clip(end - self.start, 0, piece.stop - piece.first)
        self.before = np.array([past.observed if past else 0 for past in self.kept])
        """(n,) events of each user before these."""
        self.own = [list(past.own) if past else [] for past in self.kept]
        """Items of each user's own, and those still to come."""
        self.met = np.array([labels + len(own) for own in self.own])
        """(n,) how many items have a number in each stream, before any still to come."""
        self.previous = np.array([past.previous if past else -1 for past in self.kept])
        """(n,) each user's latest item."""
        self.y = self._numbered(known)

    def _passed(
        self, known: Integers, begin: int, end: int, past: Kept | None, going_on: bool
    ) -> int:
        log = self.log
        if past is None:
            return 0
        if going_on:
            return past.passed
        if log.time is None or past.time is None:
            return 0
        first, stop = (
            int(np.searchsorted(log.time[begin:end], past.time, side=side))
            for side in ("left", "right")
        )
        # At the very time of the latest event, all up to the latest item was seen as well.
        for i in reversed(range(first, stop)):
            item = log.item[begin + i]
            own = past.previous - self.labels
            if known[item] == past.previous or (own >= 0 and log.items[item] == past.own[own]):
                return i + 1
        return first

    def _numbered(self, known: Integers) -> Integers:
        """(n, T) numbers of all items; new ones of a user's own are numbered as they come."""
        y = np.zeros((len(self.lengths), int(self.lengths.max(initial=0))), np.int64)
        for i, length in enumerate(self.lengths):
            items = self.log.item[self.start[i] : self.start[i] + length]
            row = known[items]
            numbers = {name: self.labels + j for j, name in enumerate(self.own[i])}
            for t in np.flatnonzero(row < 0):
                name = self.log.items[items[t]]
                if name not in numbers:
                    numbers[name] = self.labels + len(self.own[i])
                    self.own[i].append(name)
                row[t] = numbers[name]
            y[i, :length] = row
        return y

    def events(self, t: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """(n,) positions in the log of each user's event t, and who has one."""
        return np.minimum(self.start + t, len(self.log) - 1), t < self.lengths

    @property
    def width(self) -> int:
        """How many labels there are in the end, at most in any stream."""
        return max(self.labels + len(own) for own in self.own)

    def kept_after(self, states: Sequence[bytes], previous: Sequence[int]) -> dict[str, Kept]:
        """What to keep of the users once all these events were observed."""
        times = [past.time if past else None for past in self.kept]
        if self.log.time is not None:
            ends = self.log.time[np.minimum(self.start + self.lengths, len(self.log)) - 1]
            times = [
                float(end) if length else time
                for end, length, time in zip(ends, self.lengths, times, strict=True)
            ]
        observed = (self.before + self.lengths).tolist()
        rows = zip(states, self.own, observed, previous, times, self.passed, strict=True)
        return {name: Kept(*row) for name, row in zip(self.names, rows, strict=True)}
