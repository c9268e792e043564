"""Nearest neighbours among a stream's own past inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.baselines.base import masked_softmax, require
from labelmem.baselines.model_method import ModelMethod, ModelState, ModelStep
from labelmem.baselines.slots import FREE, no_slots, spread
from labelmem.baselines.state import wider
from labelmem.trees import chosen

__all__ = ["KNN", "KNNOptions"]


@dataclass(frozen=True)
class KNNOptions:
    """Who votes, with what weight, and how far the votes are trusted."""

    theta: float = 0.5
    """Weight of the votes against the model, once there are any."""
    neighbours: int | None = 32
    """How many of the nearest vote; None: all of them."""
    sharpness: float = 10.0
    """The vote of a neighbour is ``exp(sharpness * cos)``, normalised."""
    capacity: int | None = None
    """The most pairs kept per stream, the oldest going first; None keeps all."""

    def __post_init__(self) -> None:
        require(0 <= self.theta <= 1, "theta", self.theta, "must lie in [0, 1]")
        good = self.sharpness >= 0 and math.isfinite(self.sharpness)
        require(good, "sharpness", self.sharpness, "must be a number from 0")
        for name in ("neighbours", "capacity"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, value, "must be at least 1, or None")


@dataclass
class KNNState(ModelState):
    """The pairs (h, y) of each stream; a label of -1 marks a place that is free."""

    h: Tensor
    """(n, T, d), of length one."""
    label: Tensor
    """(n, T)."""
    seen: Tensor
    """(n,) how many pairs a stream has been shown."""


class KNN(ModelMethod[KNNState, KNNOptions]):
    """Votes of the nearest stored h, mixed with the model: ``P = (1 - theta) r + theta votes``.

    Every pair (h, y) of a stream is kept. While there is none, P = r; without a model score
    (``labels=()``) the votes alone decide.

    Examples
    --------
    >>> stream = KNN(torch.nn.Identity(), labels=(), options=KNNOptions(neighbours=1)).stream()
    >>> for x, y in [([1.0, 0.0], "east"), ([0.0, 1.0], "north")]:
    ...     _ = stream.predict(x)
    ...     stream.observe(y)
    >>> stream.predict([0.3, 0.9]).top(2)
    [('north', 1.0), ('east', 0.0)]

    References
    ----------
    Cover and Hart (1967), Nearest neighbor pattern classification; with a cosine kernel and mixed
    with a network's own belief: Grave et al. (2017), Unbounded cache model for online language
    modeling with open vocabulary.
    """

    name = "knn"
    Options = KNNOptions
    needs_logits = False

    def initial_state(self, streams: int) -> KNNState:
        """Nothing stored."""
        return KNNState(
            streams,
            self.backbone.initial_state(streams),
            h=torch.zeros(streams, 0, self.dim or 0, dtype=self.dtype, device=self.device),
            label=no_slots(streams, self.device),
            seen=torch.zeros(streams, dtype=torch.int64, device=self.device),
        )

    @torch.no_grad()
    def advance(self, state: KNNState, x: Any, width: int) -> ModelStep:
        """Model and votes, mixed."""
        step = self.see(state, x, width)
        votes = self._votes(state, F.normalise(step.h), width)
        if step.model_probs is None:
            return replace(step, probs=votes, memory_probs=votes)
        theta = self.options.theta * (state.seen > 0).to(votes.dtype)[:, None]
        probs = (1 - theta) * step.model_probs + theta * votes
        return replace(step, probs=probs, theta=theta.expand_as(probs), memory_probs=votes)

    def _votes(self, state: KNNState, h: Tensor, width: int) -> Tensor:
        if not state.label.shape[1]:
            return h.new_zeros(state.streams, width)
        cos = torch.einsum("nd,ntd->nt", h, state.h).masked_fill(state.label == FREE, -torch.inf)
        label, k = state.label, self.options.neighbours
        if k is not None and k < cos.shape[1]:
            # A stable sort, not topk: among equals the place decides, however wide the batch is.
            cos, nearest = cos.sort(dim=1, descending=True, stable=True)
            cos, nearest = cos[:, :k], nearest[:, :k]
            label = label.gather(1, nearest)
        weight = masked_softmax(self.options.sharpness * cos, label != FREE)
        # Many votes fall on one label: in double precision their order leaves no trace.
        return spread(label, weight.double(), width).to(weight.dtype)

    def learn(self, state: KNNState, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """Store the pair."""
        capacity = self.options.capacity
        place = state.seen if capacity is None else state.seen % capacity
        new = torch.arange(state.streams, device=y.device) if mask is None else mask.nonzero()[:, 0]
        stored = state.h
        if stored.shape[2] != step.h.shape[1]:  # few-shot: the length of h is known only now
            stored = step.h.new_zeros(state.streams, stored.shape[1], step.h.shape[1])
        if len(new) and int(place[new].max()) >= state.label.shape[1]:
            size = self._size(state.label.shape[1], int(place[new].max()) + 1)
            stored, state.label = wider(stored, size), wider(state.label, size, FREE)
        stored[new, place[new]] = F.normalise(step.h)[new]
        state.label[new, place[new]] = y[new]
        state.h, state.seen = stored, chosen(mask, state.seen + 1, state.seen)

    def _size(self, held: int, needed: int) -> int:
        """Some spare places, so that not every label copies everything."""
        size = max(needed, held + max(4, held // 8))
        return size if self.options.capacity is None else min(size, self.options.capacity)
