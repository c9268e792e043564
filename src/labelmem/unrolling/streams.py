"""Recorded streams as a combiner sees them, all steps at once.

When everything is written, what the memory holds does not depend on the combiner: it is read once,
and every epoch of training starts from what those reads showed. A step-by-step replay gives the
same losses; this is its fast path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem import functional as F
from labelmem.combiner import Combiner, StreamCombiner, View
from labelmem.config import MemoryConfig
from labelmem.lmn import LMN
from labelmem.metrics import FLOOR
from labelmem.replay import Features
from labelmem.stream_look import Look, slot_of

__all__ = ["Unrolled", "can_unroll", "losses", "unrolled"]


@dataclass(frozen=True)
class Unrolled:
    """Recorded streams, ``n`` side by side, T steps of each."""

    look: Look
    """(n, T, …) what each step shows."""
    slot: Tensor
    """(n, T) where the true label lies among the labels in memory, -1 for a new one."""
    model: Tensor
    """(n, T) what the model's side of the mixture gives the true label."""
    mixed: Tensor
    """(n, T) whether there is anything to mix: 0 where only the model counts, 1 for a mixture, 2
    where only the memory does."""
    mask: Tensor
    """(n, T) False in the padding."""
    h: Tensor | None
    """(n, T, d) where the combiner sees it."""


def can_unroll(combiner: float | Combiner, memory: MemoryConfig) -> bool:
    """Whether all steps follow from one reading of the memory.

    The combiner must be of that kind, and the memory must not depend on what was predicted:
    everything is written, and a label has one cell (a miss may add a second).
    """
    always = memory.margin == math.inf and memory.cells_per_label == 1
    return isinstance(combiner, StreamCombiner) and always


@torch.no_grad()
def unrolled(
    adapter: LMN, features: Features, rows: int, window: int, windows: int
) -> Iterator[Unrolled]:
    """Read the memory along recorded streams.

    Parameters
    ----------
    rows
        How many of the streams are put together.
    window, windows
        Longer streams are cut into windows of so many steps, of which at most so many are taken,
        evenly spread. The memory is that of the whole stream up to each step.
    """
    combiner, batch, head = adapter.combiner, features.batch, adapter.backbone.head
    assert isinstance(combiner, StreamCombiner) and head is not None
    state = adapter.initial_state(batch.streams)
    past = combiner.initial_state(batch.streams, 0).past
    taken = _taken(batch.y.shape[1], window, windows)
    steps: list[Unrolled] = []
    for t in range(batch.y.shape[1]):
        y, mask, key, h = batch.y[:, t], batch.mask[:, t], features.key[:, t], features.h[:, t]
        read = state.memory.read(key)
        r = pad(F.model_score(head(h)), (0, batch.width - head.out_features))
        view = View(h, r, read.spread(read.score, batch.width), read)
        slot = slot_of(read, y)
        if t // window in taken:
            kept = h if combiner.sees_h else None
            steps.append(_step(adapter, combiner.look(past, view), view, y, slot, mask, kept))
        past = torch.where(mask[:, None], combiner.remember(past, view, y, slot), past)
        state.memory.write(key, y, None, mask)
        if steps and (t + 1 == batch.y.shape[1] or (t + 1) % window == 0):
            for first in range(0, batch.streams, rows):
                piece = _stacked(steps, slice(first, first + rows))
                if piece is not None:
                    yield piece
            steps = []


def _taken(length: int, window: int, windows: int) -> set[int]:
    """The windows of a stream that are kept."""
    there = -(-length // window)
    every = max(there / windows, 1.0)
    return {int(every * i) for i in range(min(there, windows))}


def _step(
    adapter: LMN, look: Look, view: View, y: Tensor, slot: Tensor, mask: Tensor, h: Tensor | None
) -> Unrolled:
    share = adapter.share_of_model(view.r, view.s)
    holds = look.leads.any(dim=1)
    # An empty memory leaves r alone; a model without a label outside of memory leaves s alone.
    mixed = holds.to(torch.int8) * torch.where(share.sum(dim=1) > 0, 1, 2).to(torch.int8)
    model = torch.where(holds[:, None], share, view.r).gather(1, y[:, None])[:, 0]
    return Unrolled(look, slot, model, mixed, mask, h)


def _stacked(steps: list[Unrolled], rows: slice) -> Unrolled | None:
    """Steps (n, …) of some rows as (n, T, …), without the padding that none of them needs."""
    last = int(torch.stack([step.mask[rows].any() for step in steps]).sum())
    if not last:  # these streams are over
        return None
    # Memories only grow, and lie at the front: the last step has the most labels.
    cells = int(steps[-1].look.leads[rows].sum(dim=1).max())

    def cut(x: Tensor) -> Tensor:
        """The same rows with room for the same labels, (…, K) or (…, K, F) behind."""
        x = x[rows, :cells]
        return pad(x, [0, 0] * (x.ndim - 2) + [0, cells - x.shape[1]])

    def joined(name: str, of: list[Any]) -> Any:
        parts = [getattr(each, name) for each in of[:last]]
        if name == "look":
            return Look(**{f.name: joined(f.name, parts) for f in fields(Look)})
        if parts[0] is None:
            return None
        by_label = name in ("features", "base", "leads")
        return torch.stack([cut(x) if by_label else x[rows] for x in parts], dim=1)

    return Unrolled(**{f.name: joined(f.name, steps) for f in fields(Unrolled)})


def losses(combiner: StreamCombiner, streams: Unrolled) -> Tensor:
    """(n, T) -log P(y) in nats, 0 in the padding: Eq. 5 at the true label."""
    theta, s = combiner.unroll(combiner.scaled(streams.look), streams.slot, streams.h)
    known = streams.slot >= 0
    s_y = torch.zeros_like(theta)
    if s.shape[-1]:
        s_y = s.gather(-1, streams.slot.clamp(min=0)[..., None])[..., 0] * known
    theta = torch.where(streams.mixed == 0, torch.zeros_like(theta), theta)
    theta = torch.where(streams.mixed == 2, torch.ones_like(theta), theta)
    P = (1 - theta) * streams.model + theta * s_y
    return -torch.log(P.clamp(min=FLOOR)) * streams.mask
