"""The latest sessions that share a label with a stream, kept up to date label by label."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Candidates"]


class Candidates(NamedTuple):
    """Of each of n streams the latest C sessions that hold any label of the stream.

    A session that C later ones have pushed out never comes back, since a stream only gains labels:
    so a list of C is all that must be kept, however many sessions there are, and a session that
    enters shares no label but the newest.
    """

    session: Tensor
    """(n, C) their numbers, ascending, the latest first; then ``none``, which is above them all."""
    overlap: Tensor
    """(n, C) the weight of the labels that they share with the stream; 0 where there is none."""

    @staticmethod
    def empty(streams: int, most: int, none: int, device: torch.device) -> Candidates:
        """Lists of ``most`` places with nothing in them."""
        session = torch.full((streams, most), none, device=device)
        return Candidates(session, torch.zeros(streams, most, dtype=torch.float64, device=device))

    def met(self, row: Tensor, session: Tensor, gain: Tensor, none: int) -> Candidates:
        """Streams have met a label: the sessions with it gain overlap or enter.

        Parameters
        ----------
        row, session
            (m,) pairs of a stream and a session with its label.
        gain
            (n,) what the label adds to the overlap of each stream with the sessions that hold it.

        Examples
        --------
        >>> empty = Candidates.empty(1, 2, none=9, device=torch.device("cpu"))
        >>> row, one = torch.tensor([0]), torch.ones(1)
        >>> now = empty.met(row, torch.tensor([5]), one, none=9)
        >>> now = now.met(row.repeat(2), torch.tensor([3, 5]), one, none=9)
        >>> now
        Candidates(session=tensor([[3, 5]]), overlap=tensor([[1., 2.]], dtype=torch.float64))
        >>> now.met(row, torch.tensor([4]), one, none=9).session
        tensor([[3, 4]])
        """
        n, most = self.session.shape
        # With the stream as the leading digit all lists together are one sorted list.
        digit = none + 1
        start = torch.arange(n, device=row.device) * digit
        held = (self.session + start[:, None]).flatten()
        both = torch.cat([held, start[row] + session])
        key, place = torch.unique(both, return_inverse=True)
        weight = torch.cat([self.overlap.flatten(), gain[row].to(self.overlap.dtype)])
        overlap = weight.new_zeros(len(key)).index_add(0, place, weight)
        row = key // digit
        column = torch.arange(len(key), device=key.device) - torch.searchsorted(key, start)[row]
        kept = column < most
        now = Candidates.empty(n, most, none, key.device)
        now.session[row[kept], column[kept]] = (key % digit)[kept]
        now.overlap[row[kept], column[kept]] = overlap[kept]
        return now
