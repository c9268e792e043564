"""Session-based nearest neighbours: people who went where you went also went there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from labelmem.baselines.base import refuse_options, require
from labelmem.baselines.label_method import LabelMethod, LabelOptions, label_ids
from labelmem.baselines.session_candidates import Candidates
from labelmem.baselines.session_index import SessionIndex
from labelmem.baselines.slots import no_slots, opened
from labelmem.baselines.state import TensorState, wider
from labelmem.online import Recorded, Step
from labelmem.trees import chosen

__all__ = ["SessionKNN", "SessionKNNOptions"]

NEVER = -1
"""When a label was met that has not been met."""


@dataclass(frozen=True)
class SessionKNNOptions(LabelOptions):
    """Who the neighbours are and how far they are trusted."""

    theta: float = 0.5
    """Weight of the neighbours' votes against the unigram, where there are neighbours."""
    neighbours: int = 100
    """How many of the most similar training streams vote."""
    candidates: int = 1000
    """How many of the latest training streams that share a label are compared."""
    decay: float = 0.9
    """Factor on the weight of the stream's own labels per step of age; 1 is plain S-KNN."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.theta <= 1, "theta", self.theta, "must lie in [0, 1]")
        require(0 < self.decay <= 1, "decay", self.decay, "must lie in (0, 1]")
        for name in ("neighbours", "candidates"):
            value = getattr(self, name)
            require(value >= 1, name, value, "must be at least 1")


@dataclass
class SessionKNNState(TensorState):
    """The known labels (n, K) that each stream has met, and the sessions that hold any of them.

    Weights of labels count from the latest known label of the stream, which has weight 1: the
    cosine does not see a factor on all of them, and so they never all vanish.
    """

    ids: Tensor
    last: Tensor
    """(n, K) when each label was met last; NEVER where there is none."""
    time: Tensor
    """(n,) how many labels, known or not, the stream has met."""
    latest: Tensor
    """(n,) when it met the latest known one."""
    norm: Tensor
    """(n,) the sum of the squared weights of its labels."""
    candidates: Candidates


class SessionKNN(LabelMethod[SessionKNNState, SessionKNNOptions]):
    """Votes of the training streams that share most labels with the current one.

    A stream is the set of its labels, each weighted by ``decay ** age``; its similarity to a
    training stream is the cosine with that one's plain set. Of the latest ``candidates`` streams
    that share a label the ``neighbours`` most similar vote, each with its similarity for each of
    its labels. ``P = (1 - theta) unigram + theta votes``; P is the unigram where there is no
    neighbour. Labels of the stream's own are in no training stream, so they have probability 0.

    Examples
    --------
    >>> trips = [(None, ["museum", "cafe"]), (None, ["beach", "bar"]), (None, ["beach", "kiosk"])]
    >>> options = SessionKNNOptions(theta=1.0)
    >>> places = ["museum", "cafe", "beach", "bar", "kiosk"]
    >>> stream = SessionKNN(places, options).fit(trips).stream()
    >>> _ = stream.predict(0)
    >>> stream.observe("bar")
    >>> stream.predict(0).top(2)
    [('beach', 0.5), ('bar', 0.5)]

    References
    ----------
    Jannach and Ludewig (2017), When recurrent neural networks meet the neighborhood for
    session-based recommendation; the weights by age are in the spirit of the V-SKNN of Ludewig and
    Jannach (2018), Evaluation of session-based recommendation algorithms.
    """

    name = "session-knn"
    Options = SessionKNNOptions
    index: SessionIndex | None = None
    """What was fitted."""

    def fit(self, sequences: Iterable[Recorded], **options: Any) -> Self:
        """Index the training streams, which should come oldest first, and count their labels.

        Streams must begin after it: what they keep refers to these training streams.
        """
        refuse_options(self.name, options)
        recorded = [label_ids(labels, self.known) for _, labels in sequences]
        self._count(recorded)
        self.index = SessionIndex.of(recorded, len(self.known), self.device)
        return self

    def signature(self) -> dict[str, Any]:
        """A saved stream must agree on the sessions, and on what its overlap with them is."""
        sessions = None if self.index is None else self.index.digest
        own = {"candidates": self.options.candidates, "decay": self.options.decay}
        return super().signature() | own | {"sessions": sessions}

    def initial_state(self, streams: int) -> SessionKNNState:
        """No label met yet."""
        none = no_slots(streams, self.device)
        time = none.new_zeros(streams)
        norm = torch.zeros(streams, dtype=torch.float64, device=self.device)
        sessions = 0 if self.index is None else len(self.index)
        most = min(self.options.candidates, sessions)
        candidates = Candidates.empty(streams, most, sessions, self.device)
        return SessionKNNState(streams, none, none.clone(), time, time.clone(), norm, candidates)

    def advance(self, state: SessionKNNState, x: Any, width: int) -> Step:
        """Unigram and votes, mixed."""
        shared = self.background(state.streams, width)
        if self.index is None or not state.candidates.session.shape[1]:
            return Step(x, shared)
        session, share = self.voters(state)
        votes = wider(self.index.votes(session, share, shared.dtype), width)
        theta = self.options.theta * share.any(dim=1, keepdim=True).to(shared.dtype)
        probs = (1 - theta) * shared + theta * votes
        return Step(x, probs, model_probs=shared, memory_probs=votes)

    def voters(self, state: SessionKNNState) -> tuple[Tensor, Tensor]:
        """The sessions (n, k) that vote, and what each gives to all its labels; in all 1, or 0."""
        assert self.index is not None
        session, overlap = state.candidates
        sizes = self.index.sizes[session]
        # Never below 1, the weight of the latest label, except where there is nothing to compare.
        length = (state.norm[:, None] * sizes).sqrt().clamp(min=1.0)
        similarity = overlap / length
        if session.shape[1] > self.options.neighbours:
            column = _greatest(similarity, self.options.neighbours)
            session, similarity = session.gather(1, column), similarity.gather(1, column)
            sizes = sizes.gather(1, column)
        total = (similarity * sizes).sum(dim=1, keepdim=True)
        return session, similarity / torch.where(total > 0, total, 1.0)

    def commit(self, state: SessionKNNState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Let all that was met before fade, then give the label its full weight again."""
        known = y < len(self.known)
        joins = known if mask is None else known & mask
        ids, slot = opened(state.ids, y, joins)
        last = wider(state.last, ids.shape[1], NEVER)
        before = last.gather(1, slot[:, None])[:, 0]
        decay = torch.tensor(self.options.decay, dtype=torch.float64, device=y.device)
        fade = torch.where(joins, decay ** (state.time - state.latest), 1.0)
        old = torch.where(before == NEVER, 0.0, decay ** (state.time - before))
        norm = chosen(joins, fade.square() * state.norm + (1 - old.square()), state.norm)
        state.candidates = self._met(state.candidates, y, joins, fade, 1 - old)
        state.last = chosen(joins, last.scatter(1, slot[:, None], state.time[:, None]), last)
        state.ids, state.norm = ids, norm
        state.latest = torch.where(joins, state.time, state.latest)
        state.time = chosen(mask, state.time + 1, state.time)

    def _met(
        self, candidates: Candidates, y: Tensor, joins: Tensor, fade: Tensor, gain: Tensor
    ) -> Candidates:
        """The candidates after label y (n,) of the streams that join."""
        session, overlap = candidates
        if self.index is None or not session.shape[1]:
            return candidates
        stream = joins.nonzero()[:, 0]
        # A session among the latest of all is among as many latest of each of its labels.
        row, holder = self.index.sessions_with(y[stream], session.shape[1])
        faded = Candidates(session, overlap * fade[:, None])
        return faded.met(stream[row], holder, gain, none=len(self.index))


def _greatest(values: Tensor, most: int) -> Tensor:
    """The columns (n, most) of the greatest values (n, C) of each row; of equals the first.

    Examples
    --------
    >>> _greatest(torch.tensor([[0.5, 0.7, 0.5, 0.9]]), 3)
    tensor([[0, 1, 3]])
    """
    # Not a stable sort: the greatest are few, and topk finds the least of them far sooner.
    least = values.topk(most, dim=1, sorted=False).values.amin(dim=1, keepdim=True)
    above, level = values > least, values == least
    room = most - above.sum(dim=1, keepdim=True)
    taken = above | (level & (level.cumsum(dim=1) <= room))
    return taken.nonzero()[:, 1].view(len(values), most)
