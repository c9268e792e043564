"""Recorded sessions, indexed both ways: which sessions hold an item, which items a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import torch
from torch import Tensor

__all__ = ["SessionIndex"]


@dataclass(frozen=True)
class SessionIndex:
    """Two ragged lists in compressed form; sessions are numbered from the latest to the oldest.

    Examples
    --------
    >>> index = SessionIndex.of([torch.tensor([1]), torch.tensor([1, 0, 1])], items=2)
    >>> row, session = index.sessions_with(torch.tensor([1, 0]), most=10)
    >>> list(zip(row.tolist(), session.tolist()))
    [(0, 0), (0, 1), (1, 0)]
    """

    items: Tensor
    """The distinct items of session 0, then of session 1, and so on."""
    starts: Tensor
    """(sessions + 1,) where each session begins in ``items``."""
    postings: Tensor
    """The sessions with item 0, latest first, then those with item 1, and so on."""
    posting_starts: Tensor
    """(items + 1,) where each item begins in ``postings``."""

    @staticmethod
    def of(
        sessions: Iterable[Tensor], items: int, device: torch.device | str = "cpu"
    ) -> SessionIndex:
        """Index sessions given as item ids, oldest session first; negative ids are left out."""
        given = list(sessions)[::-1]
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

    @cached_property
    def sizes(self) -> Tensor:
        """(sessions + 1,) how many distinct items each session has; the last is no session."""
        return torch.cat([self.starts.diff(), self.starts.new_zeros(1)])

    @cached_property
    def digest(self) -> str:
        """A fingerprint of all sessions."""
        parts = (part.cpu().numpy().tobytes() for part in (self.items, self.starts))
        return sha256(b"".join(parts)).hexdigest()[:16]

    def sessions_with(self, item: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """The latest ``most`` sessions with each item (m,), as pairs (row of ``item``, session)."""
        start = self.posting_starts[item]
        end = torch.minimum(self.posting_starts[item + 1], start + most)
        row, place = _ranges(start, end)
        return row, self.postings[place]

    def votes(self, session: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """(n, items) what the items get if each of the sessions (n, k) gives its weight to all its.

        Examples
        --------
        >>> index = SessionIndex.of([torch.tensor([1, 2]), torch.tensor([0, 1])], items=3)
        >>> weight = torch.tensor([[0.5, 0.25]], dtype=torch.float64)
        >>> index.votes(torch.tensor([[0, 1]]), weight, torch.float32)
        tensor([[0.5000, 0.7500, 0.2500]])
        """
        n, items = len(session), len(self.posting_starts) - 1
        stream, column = weight.nonzero(as_tuple=True)
        session, weight = session[stream, column], weight[stream, column]
        row, place = _ranges(self.starts[session], self.starts[session + 1])
        votes = weight.new_zeros(n * items)
        votes.index_add_(0, stream[row] * items + self.items[place], weight[row])
        return votes.view(n, items).to(dtype)


def _starts(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _ranges(start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """All places from start to end of each row, one after the other, with their rows."""
    sizes = end - start
    row = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    offset = start - (sizes.cumsum(0) - sizes)
    return row, offset[row] + torch.arange(len(row), device=sizes.device)
