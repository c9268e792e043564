"""Session-based nearest neighbours: the training streams most like the current one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.baselines.session_index import SessionIndex
from labelmem.baselines.session_knn import SessionKNN as Method
from labelmem.metrics import FLOOR
from labelmem.online import Step
from labelmem.recording import lockstep_batches
from labelmem.search import Point
from labelmem_paper.experiments.sequences.baseline import BaselineContender
from labelmem_paper.experiments.sequences.task import SequenceTask

Votes = tuple[Tensor, Tensor, Tensor]
"""Of every validation token: its label, the share of the votes it got, whether anyone voted."""
MIXTURE = ("theta", "smoothing")
"""What changes how the votes are mixed with the unigram, but not the votes."""


class SessionKNN(BaselineContender):
    """Neighbours, how fast the past fades, and the mixture with the unigram."""

    name = "session-knn"
    grid = {
        "theta": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98],
        "neighbours": [20, 50, 100, 200, 500],
        "decay": [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0],
        "smoothing": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    }
    start = {"theta": 0.5, "neighbours": 100, "decay": 0.9, "smoothing": 10.0}

    def __init__(self, task: SequenceTask) -> None:
        super().__init__(task)
        self._kept: dict[tuple[Any, ...], Votes] = {}

    def build(self, point: Point) -> Method:
        """The fitted method with the options of ``point``."""
        method = super().build(point)
        assert isinstance(method, Method)
        return method

    def loss(self, point: Point) -> float:
        """Nats per token on the validation streams, which are replayed for new votes only."""
        method = self.build(point)
        voters = tuple((name, value) for name, value in point.items() if name not in MIXTURE)
        if voters not in self._kept:
            self._kept[voters] = self._votes(method)
        y, votes, any_vote = self._kept[voters]
        unigram = method.background(1, self.task.labels)[0]
        theta = method.options.theta * any_vote.to(votes.dtype)
        p = (1 - theta) * unigram[y] + theta * votes
        return float(-p.double().clamp(min=FLOOR).log().mean())

    def _votes(self, method: Method) -> Votes:
        """Replay the validation streams, asking for the votes of the true labels alone."""
        size, device, dtype = self.task.config["batch_size"], method.device, method.dtype
        told: list[Votes] = []
        index = method.index
        assert index is not None
        holds = Holders(index, len(method.known))
        for recorded in lockstep_batches(self.task.valid, method.known, size, device, dtype):
            state = method.initial_state(recorded.streams)
            for y, mask in zip(recorded.y.T, recorded.mask.T, strict=True):
                session, share = method.voters(state)
                # Not those of all the other labels: that is what would take the time.
                votes = (share * holds(session, y)).sum(dim=1).to(dtype)
                told.append((y[mask], votes[mask], share.any(dim=1)[mask]))
                method.commit(state, Step(None, votes), y, mask)
        y, votes, any_vote = (torch.cat(parts) for parts in zip(*told, strict=True))
        return y, votes, any_vote


class Holders:
    """Which sessions of an index hold an item."""

    def __init__(self, index: SessionIndex, items: int) -> None:
        self.items = items
        session = torch.arange(len(index), device=index.items.device)
        pairs = session.repeat_interleave(index.starts.diff()) * items + index.items
        above = pairs.new_full((1,), torch.iinfo(pairs.dtype).max)
        self._pairs = torch.cat([pairs, above])  # ascending

    def __call__(self, session: Tensor, item: Tensor) -> Tensor:
        """(n, k) whether each of the sessions (n, k) holds the item (n,) of its row."""
        key = session * self.items + item[:, None]
        found = self._pairs[torch.searchsorted(self._pairs, key)] == key
        return found & (item < self.items)[:, None]


CONTENDER = SessionKNN
