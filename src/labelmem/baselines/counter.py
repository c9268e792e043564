"""The habits of one user: what it did often and lately, it will do again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelmem.baselines.base import require
from labelmem.baselines.label_method import LabelMethod, LabelOptions
from labelmem.baselines.slots import FREE, no_slots, opened, spread
from labelmem.baselines.state import TensorState, wider
from labelmem.online import Step
from labelmem.trees import chosen

__all__ = ["Counter", "CounterOptions"]


@dataclass(frozen=True)
class CounterOptions(LabelOptions):
    """How a counter counts and how far it is trusted."""

    theta: float = 0.5
    """Weight of the stream's own counts against the unigram, once there are any."""
    decay: float = 0.99
    """Factor on all counts of the stream at each of its labels; 1 forgets nothing."""
    power: float = 1.0
    """Exponent on the counts: below 1 flattens them, 0 only asks what was seen at all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.theta <= 1, "theta", self.theta, "must lie in [0, 1]")
        require(0 < self.decay <= 1, "decay", self.decay, "must lie in (0, 1]")
        good = self.power >= 0 and math.isfinite(self.power)
        require(good, "power", self.power, "must be a number from 0")


@dataclass
class CounterState(TensorState):
    """The labels (n, K) that each stream has met, and their decayed counts."""

    ids: Tensor
    count: Tensor


class Counter(LabelMethod[CounterState, CounterOptions]):
    """Recency-decayed frequencies of a stream's own labels, mixed with the unigram of training.

    ``P = (1 - theta) unigram + theta * c**power / sum(c**power)``. At each label all counts c of
    the stream are multiplied by ``decay``, then the label's own grows by one. While a stream has
    seen nothing, P is the unigram. It looks at no input at all, and is hard to beat where people
    have habits.

    Examples
    --------
    >>> method = Counter(["home", "work"], CounterOptions(theta=0.5, decay=1.0))
    >>> stream = method.stream()
    >>> for place in ("gym", "home", "gym"):
    ...     _ = stream.predict(0)
    ...     stream.observe(place)
    >>> stream.predict(0).top(2)
    [('home', 0.4166...), ('gym', 0.3333...)]

    References
    ----------
    Kuhn and De Mori (1990), A cache-based natural language model for speech recognition.
    """

    name = "counter"
    Options = CounterOptions

    def initial_state(self, streams: int) -> CounterState:
        """No label met yet."""
        count = torch.zeros(streams, 0, dtype=self.dtype, device=self.device)
        return CounterState(streams, no_slots(streams, self.device), count)

    def advance(self, state: CounterState, x: Any, width: int) -> Step:
        """Unigram and counts, mixed."""
        theta = self.options.theta
        shared = self.background(state.streams, width)
        # The power is taken only where a label lies: 0 ** 0 would be one.
        weight = state.count**self.options.power * (state.ids != FREE)
        total = weight.sum(dim=1, keepdim=True)
        own = spread(state.ids, weight / total.clamp(min=1e-30), width)
        trust = theta * (total > 0) if len(self.known) else 1.0
        probs = (1 - trust) * shared + trust * own
        return Step(x, probs, model_probs=shared, memory_probs=own)

    def commit(self, state: CounterState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Decay all, then count one."""
        ids, slot = opened(state.ids, y, mask)
        old = wider(state.count, ids.shape[1])
        one = torch.zeros_like(old).scatter(1, slot[:, None], 1.0)
        state.ids, state.count = ids, chosen(mask, self.options.decay * old + one, old)
