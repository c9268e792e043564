"""Replaying recorded streams through an adapter, the frozen model run only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.lmn import LMN, LMNState, LMNStep
from labelmem.metrics import FLOOR
from labelmem.recording import Lockstep

__all__ = ["Features", "ReplayStep", "record", "replay", "replay_live"]


@dataclass(frozen=True)
class Features:
    """Recorded streams with the model's answers: (n, T, d) hidden vectors and memory keys."""

    batch: Lockstep
    h: Tensor
    key: Tensor


@dataclass(frozen=True)
class ReplayStep:
    """One step of a replay, after its labels were learned."""

    loss: Tensor
    """(n,) -log P(y) in nats, 0 in the padding."""
    hit: Tensor
    """(n,) whether the most probable label was the true one."""
    tokens: int
    state: LMNState


@torch.no_grad()
def record(adapter: LMN, batch: Lockstep) -> Features:
    """Run the model over all steps of a batch; memory and combiner take no part."""
    recurrent = adapter.initial_recurrent(batch.streams)
    hs, keys = [], []
    for t in range(batch.y.shape[1]):
        h, key, _, recurrent = adapter.encode(batch.at(t), recurrent, batch.streams)
        hs.append(h)
        keys.append(key)
    h = torch.stack(hs, dim=1)
    return Features(batch, h, h if adapter.key is None else torch.stack(keys, dim=1))


Watch = Callable[[LMNState, LMNStep], None]
"""Called with every prediction and the state it was made from, before its labels are learned."""


def replay(adapter: LMN, features: Features, watch: Watch | None = None) -> Iterator[ReplayStep]:
    """Predict and learn step by step, differentiable in the combiner.

    The caller may cut the graph between steps by detaching ``state.combiner``.
    """
    batch, head = features.batch, adapter.backbone.head
    state = adapter.initial_state(batch.streams)
    for t in range(batch.y.shape[1]):
        h = features.h[:, t]
        with torch.no_grad():
            logits = None if head is None else head(h)
        yield _step(adapter, state, batch, t, h, features.key[:, t], logits, watch)


def replay_live(adapter: LMN, batch: Lockstep) -> Iterator[ReplayStep]:
    """The same with the model run at every step, differentiable in the model too."""
    state = adapter.initial_state(batch.streams)
    for t in range(batch.y.shape[1]):
        encoded = adapter.encode(batch.at(t), state.recurrent, batch.streams)
        h, key, logits, state.recurrent = encoded
        yield _step(adapter, state, batch, t, h, key, logits)


def _step(
    adapter: LMN,
    state: LMNState,
    batch: Lockstep,
    t: int,
    h: Tensor,
    key: Tensor,
    logits: Tensor | None,
    watch: Watch | None = None,
) -> ReplayStep:
    y, mask = batch.y[:, t], batch.mask[:, t]
    # Ids beyond the labels met so far have neither cells nor model score, so they weigh nothing.
    step = adapter.combine(state, h, key, logits, batch.width)
    if watch is not None:
        watch(state, step)
    p = step.probs.gather(1, y[:, None])[:, 0].clamp(min=FLOOR)
    loss = torch.where(mask, -torch.log(p), torch.zeros_like(p))
    hit = mask & (step.probs.argmax(dim=1) == y) & (p > FLOOR)
    adapter.learn(state, step, y, mask)
    return ReplayStep(loss, hit, int(mask.sum()), state)
