"""Session-based nearest neighbours: people who went where you went also went there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from labelmem.baselines.base import refuse_options, require
from labelmem.baselines.label_method import LabelMethod, LabelOptions, label_ids
from labelmem.baselines.session_index import SessionIndex
from labelmem.baselines.slots import FREE, no_slots, opened
from labelmem.baselines.state import TensorState, wider
from labelmem.online import Recorded, Step
from labelmem.trees import chosen

__all__ = ["SessionKNN", "SessionKNNOptions"]


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
    """The known labels (n, K) that each stream has met, when last, and how long it is."""

    ids: Tensor
    last: Tensor
    time: Tensor


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
        """Index the training streams, which should come oldest first, and count their labels."""
        refuse_options(self.name, options)
        recorded = [label_ids(labels, self.known) for _, labels in sequences]
        self._count(recorded)
        self.index = SessionIndex.of(recorded, len(self.known), self.device)
        return self

    def initial_state(self, streams: int) -> SessionKNNState:
        """No label met yet."""
        none = no_slots(streams, self.device)
        return SessionKNNState(streams, none, none.clone(), none.new_zeros(streams))

    def advance(self, state: SessionKNNState, x: Any, width: int) -> Step:
        """Unigram and votes, mixed."""
        shared = self.background(state.streams, width)
        if self.index is None or not len(self.index):
            return Step(x, shared)
        votes = self._votes(self.index, state, width)
        total = votes.sum(dim=1, keepdim=True)
        votes = (votes / torch.where(total > 0, total, 1.0)).to(shared.dtype)
        theta = self.options.theta * (total > 0).to(shared.dtype)
        probs = (1 - theta) * shared + theta * votes
        return Step(x, probs, model_probs=shared, memory_probs=votes)

    def _votes(self, index: SessionIndex, state: SessionKNNState, width: int) -> Tensor:
        stream, session, similarity = self._candidates(index, state)
        # The most similar first within each stream; of equals the latest, as they are sorted.
        order = similarity.flip(0).argsort(descending=True, stable=True)
        order = len(order) - 1 - order
        order = order[stream[order].argsort(stable=True)]
        stream, session, similarity = stream[order], session[order], similarity[order]
        near = _rank(stream, state.streams) < self.options.neighbours
        stream, session, similarity = stream[near], session[near], similarity[near]
        row, item = index.items_of(session)
        votes = similarity.new_zeros(state.streams * width)
        votes.index_add_(0, stream[row] * width + item, similarity[row])
        return votes.view(state.streams, width)

    def _candidates(
        self, index: SessionIndex, state: SessionKNNState
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Streams, sessions that share a label with them, similarities; by stream, then age."""
        most = self.options.candidates
        stream, slot = (state.ids != FREE).nonzero(as_tuple=True)
        age = state.time[stream] - 1 - state.last[stream, slot]
        weight = torch.tensor(self.options.decay, dtype=torch.float64, device=age.device) ** age
        norm = weight.new_zeros(state.streams).index_add_(0, stream, weight.square())
        # A session among the latest `most` of all is among the latest `most` of each of its items.
        row, session = index.sessions_with(state.ids[stream, slot], most)
        shared = weight.new_zeros(state.streams * len(index))
        shared.index_add_(0, stream[row] * len(index) + session, weight[row])
        of, session = (table := shared.view(state.streams, -1)).nonzero(as_tuple=True)
        similarity = table[of, session] / (norm[of] * index.sizes(session)).sqrt()
        late = _rank(of.flip(0), state.streams).flip(0) < most
        return of[late], session[late], similarity[late]

    def commit(self, state: SessionKNNState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Remember when the label was last met."""
        known = y < len(self.known)
        joins = known if mask is None else known & mask
        ids, slot = opened(state.ids, y, joins)
        old = wider(state.last, ids.shape[1])
        state.last = chosen(joins, old.scatter(1, slot[:, None], state.time[:, None]), old)
        state.ids, state.time = ids, chosen(mask, state.time + 1, state.time)


def _rank(group: Tensor, groups: int) -> Tensor:
    """The place of each entry among those of its group; groups must lie together.

    Examples
    --------
    >>> _rank(torch.tensor([2, 2, 0, 1, 1, 1]), 3)
    tensor([0, 1, 0, 0, 1, 2])
    """
    place = torch.arange(len(group), device=group.device)
    first = torch.full((groups,), len(group), device=group.device)
    first = first.scatter_reduce(0, group, place, "amin")
    return place - first[group]
