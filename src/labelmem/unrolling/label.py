"""Training the paper's combiner on recorded streams, a stretch of steps at once.

What a replay step by step does in many small operations is done for a whole stretch: the model's
scores, the memory's, theta of every label, the mixture. The losses, the gradients and the updates
are those of the replay.

Which steps write may depend on theta, and theta on what was written. Then a guess is made, all
steps are taken with it, and they tell which of them write. A step depends on those before it only,
so the first step that was guessed wrongly is right the next time, and a guess that comes out as it
went in is the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem import functional as F
from labelmem.combiner import Combiner, LabelCombiner
from labelmem.combining import misses
from labelmem.config import MemoryConfig
from labelmem.fast import allowed
from labelmem.lmn import LMN
from labelmem.metrics import FLOOR
from labelmem.replay import Features
from labelmem.unrolling.cells import Cells, Written, places_of
from labelmem.unrolling.theta import thetas

__all__ = ["can_stretch", "stretches"]


def can_stretch(combiner: float | Combiner, memory: MemoryConfig) -> bool:
    """Whether streams can be taken in stretches.

    Every label must have a state of its own and one cell, and no cell may ever have to go.
    """
    simple = memory.cells_per_label == 1 and memory.capacity is None
    simple = simple and type(memory) is MemoryConfig  # others keep, or read, less than all
    exact = isinstance(combiner, LabelCombiner) and not combiner.active_threshold
    return exact and simple and allowed()


@dataclass
class _Before:
    """All that is remembered between two stretches; of the last step, one step (n, 1, …)."""

    cells: Cells
    mu: Tensor
    r: Tensor
    s: Tensor
    missed: Tensor


@dataclass(frozen=True)
class _Stretch:
    """Some steps of recorded streams, (n, T, …), and what the model says of them."""

    h: Tensor
    key: Tensor
    y: Tensor
    place: Tensor
    mask: Tensor
    r: Tensor
    missed: Tensor
    """(n, T) whether the model's best label was wrong."""


@dataclass(frozen=True)
class _Taken:
    """The same steps with a guess about which of them write."""

    written: Written
    s: Tensor
    missed: Tensor
    mu: Tensor
    loss: Tensor
    """(n, T) -log P(y), 0 in the padding."""
    writes: Tensor
    """(n, T) which steps write after all."""


def stretches(
    adapter: LMN, features: Features, truncate: int
) -> Callable[[], Iterator[tuple[Tensor, int]]]:
    """One pass over recorded streams, as often as it is called: losses in nats and tokens.

    The gradient is cut after every ``truncate`` steps.
    """
    batch = features.batch
    place, names = places_of(batch.y)
    tokens = batch.mask.sum(dim=0).tolist()
    guess = batch.mask.clone()  # what the last pass found is the first guess of the next

    def passed() -> Iterator[tuple[Tensor, int]]:
        before = _start(adapter, features, names.shape[1])
        for first in range(0, len(tokens), truncate):
            part = slice(first, first + truncate)
            steps = _stretch(adapter, features, place, part)
            taken = _settled(adapter, before, steps, names, guess[:, part])
            guess[:, part] = taken.writes
            yield taken.loss.sum(), sum(tokens[part])
            # Copies, so that no more than the last step stays.
            r, s = steps.r[:, -1:].clone(), taken.s[:, -1:].clone()
            missed = torch.stack([steps.missed, taken.missed], dim=2)[:, -1:].to(r.dtype)
            before = _Before(taken.written.after(), taken.mu, r, s, missed)

    return passed


def _start(adapter: LMN, features: Features, places: int) -> _Before:
    combiner, n, width = adapter.combiner, features.batch.streams, features.batch.width
    assert isinstance(combiner, LabelCombiner)
    zeros = combiner.weight_theta.new_zeros
    none = zeros(n, 1, width)
    cells = Cells.empty(features.key, places)
    return _Before(cells, zeros(n, width, combiner.hidden), none, none, zeros(n, 1, 2))


@torch.no_grad()
def _stretch(adapter: LMN, features: Features, place: Tensor, part: slice) -> _Stretch:
    batch, head = features.batch, adapter.backbone.head
    assert head is not None
    h, y = features.h[:, part], batch.y[:, part]
    r, own = F.model_score(head(h)), batch.width - head.out_features
    r = pad(r, (0, own)) if own else r
    missed = misses(r.flatten(0, 1), y.flatten()).view_as(y)
    return _Stretch(h, features.key[:, part], y, place[:, part], batch.mask[:, part], r, missed)


def _settled(
    adapter: LMN, before: _Before, steps: _Stretch, names: Tensor, guess: Tensor
) -> _Taken:
    """The steps with the writes that they themselves ask for."""
    for _ in range(guess.shape[1] + 1):  # one more step is right each time
        taken = _taken(adapter, before, steps, names, guess)
        if adapter.memory.margin == math.inf or torch.equal(taken.writes, guess):
            break
        guess = taken.writes
    return taken


def _taken(adapter: LMN, before: _Before, steps: _Stretch, names: Tensor, guess: Tensor) -> _Taken:
    combiner = adapter.combiner
    assert isinstance(combiner, LabelCombiner)
    with torch.no_grad():
        written = Written.by(before.cells, adapter.memory, steps.key, steps.place, guess)
        score = written.scores()
        missed = misses(score.flatten(0, 1), steps.place.flatten()).view_as(steps.y)
        # Places without a label have a score of 0, which is added to that of label 0.
        at = names[:, None].expand_as(score)
        s = torch.zeros_like(steps.r).scatter_add_(2, at, score)
        flags = torch.stack([steps.missed, missed], dim=2).to(s.dtype)
    late = [_late(*pair) for pair in ((before.missed, flags), (before.r, steps.r), (before.s, s))]
    shared = combiner.shared(steps.h, late[0])
    theta, mu = thetas(combiner, before.mu, late[1], late[2], shared)
    share = adapter.share_of_model(steps.r, s)
    total, own, P = _Mixture.apply(theta, share, s, steps.y)  # type: ignore[no-untyped-call]
    holds = (score > 0).any(dim=2) & (total > 0)  # else it is the model's share that counts
    p = own / torch.where(holds, total, torch.ones_like(total))
    p = torch.where(holds, p, share.gather(2, steps.y[..., None])[..., 0])
    loss, writes = -torch.log(p.clamp(min=FLOOR)) * steps.mask, steps.mask
    if adapter.memory.margin != math.inf:
        P = torch.where(holds[..., None], P, share).flatten(0, 1)
        lost, _ = F.margin_loss(P, steps.y.flatten(), adapter.memory.margin)
        writes = writes & (lost.view_as(writes) > 0)
    return _Taken(written, s, missed, mu, loss, writes)


def _late(last: Tensor, now: Tensor) -> Tensor:
    """(n, T, …) what was so one step before each step."""
    return torch.cat([last, now[:, :-1]], dim=1)


class _Mixture(torch.autograd.Function):
    """Eq. 5, its sum over all labels and its value at the true label, both with a gradient.

    The whole of it, which nobody differentiates, has none: that saves most of the passes back.
    """

    @staticmethod
    def forward(
        ctx: Any, theta: Tensor, share: Tensor, s: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        P = torch.lerp(share, s, theta)
        ctx.save_for_backward(share, s, y)
        ctx.mark_non_differentiable(P)
        ctx.set_materialize_grads(False)
        return P.sum(dim=2), P.gather(2, y[..., None])[..., 0], P

    @staticmethod
    def backward(ctx: Any, by_total: Tensor, by_own: Tensor, _: None) -> Any:
        share, s, y = ctx.saved_tensors
        slope, at = s - share, y[..., None]
        own = slope.gather(2, at) * by_own[..., None]
        return (slope * by_total[..., None]).scatter_add_(2, at, own), None, None, None
