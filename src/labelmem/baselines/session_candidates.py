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
            (m,) pairs of a stream and a session with its label, by stream, then ascending.
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
        streams = torch.arange(len(self.session), device=row.device)
        # With the stream as the leading digit all lists together are one sorted list.
        held = (self.session + streams[:, None] * (none + 1)).flatten()
        key = session + row * (none + 1)
        place = torch.searchsorted(held, key)
        here = place.clamp(max=len(held) - 1)
        hit = held[here] == key
        gain = gain.to(self.overlap.dtype)
        overlap = self.overlap.flatten().index_add(0, here, gain[row] * hit)
        grown = Candidates(self.session, overlap.view_as(self.overlap))
        row, place, session = row[~hit], place[~hit], session[~hit]
        return grown._entered(row, place, session, gain[row]) if len(row) else grown

    def _entered(self, row: Tensor, place: Tensor, session: Tensor, overlap: Tensor) -> Candidates:
        """Merge pairs in, each before what lies at its place; what falls off the end is dropped."""
        n, most = self.session.shape
        start = torch.arange(n, device=row.device) * most
        entering = torch.bincount(row, minlength=n)
        of_earlier_streams = entering.cumsum(0) - entering
        ahead = torch.bincount(place, minlength=n * most + 1).cumsum(0)[:-1].view(n, most)
        column = torch.arange(most, device=row.device) + ahead - of_earlier_streams[:, None]
        spot = torch.where(column < most, column + start[:, None], n * most).flatten()
        among = torch.arange(len(row), device=row.device) - of_earlier_streams[row]
        column = place - start[row] + among
        spot = torch.cat([spot, torch.where(column < most, column + start[row], n * most)])

        def merged(old: Tensor, new: Tensor) -> Tensor:
            both = torch.cat([old.flatten(), new])
            return both.new_empty(n * most + 1).scatter(0, spot, both)[:-1].view(n, most)

        return Candidates(merged(self.session, session), merged(self.overlap, overlap))
