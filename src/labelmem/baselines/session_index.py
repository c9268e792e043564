"""Recorded sessions, indexed both ways: which sessions hold an item, which items a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["SessionIndex"]


@dataclass(frozen=True)
class SessionIndex:
    """Two ragged lists in compressed form; sessions are numbered from the oldest to the latest.

    Examples
    --------
    >>> index = SessionIndex.of([torch.tensor([1, 0, 1]), torch.tensor([1])], items=2)
    >>> row, session = index.sessions_with(torch.tensor([1, 0]), most=10)
    >>> list(zip(row.tolist(), session.tolist()))
    [(0, 0), (0, 1), (1, 0)]
    """

    items: Tensor
    """The distinct items of session 0, then of session 1, and so on."""
    starts: Tensor
    """(sessions + 1,) where each session begins in ``items``."""
    postings: Tensor
    """The sessions with item 0, oldest first, then those with item 1, and so on."""
    posting_starts: Tensor
    """(items + 1,) where each item begins in ``postings``."""

    @staticmethod
    def of(
        sessions: Iterable[Tensor], items: int, device: torch.device | str = "cpu"
    ) -> SessionIndex:
        """Index sessions given as item ids, oldest session first; negative ids are left out."""
        given = list(sessions)
        flat = torch.cat([torch.zeros(0, dtype=torch.int64), *given])
        lengths = torch.tensor([len(session) for session in given], dtype=torch.int64)
        number = torch.arange(len(given)).repeat_interleave(lengths)
        pairs = torch.unique((number * items + flat)[flat >= 0])
        session, item = pairs // max(items, 1), pairs % max(items, 1)
        order = item.argsort(stable=True)
        sizes = session.bincount(minlength=len(given))
        parts = (item, _starts(sizes), session[order], _starts(item.bincount(minlength=items)))
        return SessionIndex(*(part.to(device) for part in parts))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self, session: Tensor) -> Tensor:
        """How many distinct items sessions have."""
        return self.starts[session + 1] - self.starts[session]

    def sessions_with(self, item: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """The latest ``most`` sessions with each item (m,), as pairs (row of ``item``, session)."""
        end = self.posting_starts[item + 1]
        start = torch.maximum(self.posting_starts[item], end - most)
        row, place = _ranges(start, end)
        return row, self.postings[place]

    def items_of(self, session: Tensor) -> tuple[Tensor, Tensor]:
        """The items of each session (m,), as pairs (row of ``session``, item)."""
        row, place = _ranges(self.starts[session], self.starts[session + 1])
        return row, self.items[place]


def _starts(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _ranges(start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """All places from start to end of each row, one after the other, with their rows."""
    sizes = end - start
    row = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    offset = start - (sizes.cumsum(0) - sizes)
    return row, offset[row] + torch.arange(len(row), device=sizes.device)
