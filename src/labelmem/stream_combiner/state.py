"""What a stream combiner remembers of a stream from one step to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelmem.combining import CombinerState, CombinerStep, View, misses
from labelmem.stream_look import log
from labelmem.trust import constant

__all__ = ["PAST", "RATES", "RATES_32", "StreamState", "StreamStep", "echo_of", "remembered"]

RATES = (0.7, 0.9, 0.97)
"""Running shares are of the last few, ten and thirty labels."""
RATES_32 = np.array(RATES, np.float32)
PAST = 3 + 2 * len(RATES)
"""How many numbers tell how labels came."""
_NOT_THERE = -8.0  # what a label that was not in memory counts as, in nats


@dataclass(frozen=True)
class StreamState(CombinerState):
    """Committed state of ``n`` streams."""

    mu: Tensor
    """(n, hidden)."""
    echo: Tensor
    """(n, 2) how the last guess about the labels in memory went: whether it hit, and its log s."""
    past: Tensor
    """(n, PAST) how labels came so far: their number; of the last one, whether it was new to memory
    and whether the model missed it; running shares of new ones and of immediate repeats."""


@dataclass(frozen=True)
class StreamStep(CombinerStep):
    """A step that also remembers its first guess."""

    guess: Tensor | None = None
    """(n, K) s from the labels' features alone, at the leading cells."""
    best: Tensor | None = None
    """(n,) the model's own best label, -1 for none, where fused kernels have looked for it."""


@torch.no_grad()
def remembered(past: Tensor, view: View, y: Tensor, slot: Tensor) -> Tensor:
    """How labels came (n, PAST), once the labels y (n,) at the positions ``slot`` are known."""
    assert view.read.past is not None
    new = (slot < 0).to(past.dtype)
    age = _at(view.read.past.age, slot, 0)
    rates = constant(RATES, past.device, past.dtype)
    k = len(RATES)
    novelty = rates * past[:, 3 : 3 + k] + (1 - rates) * new[:, None]
    again = (age == 1).to(past.dtype)[:, None]
    repeats = rates * past[:, 3 + k :] + (1 - rates) * again
    last = torch.stack([past[:, 0] + 1, new, misses(view.r, y).to(past.dtype)], dim=1)
    return torch.cat([last, novelty, repeats], dim=1)


def echo_of(guess: Tensor, slot: Tensor) -> Tensor:
    """(…, 2) whether the first guess hit, and its log s of the label, once that is known."""
    known = slot >= 0
    log_s = torch.where(known, log(_at(guess, slot, 0.0)).clamp(min=_NOT_THERE), _NOT_THERE)
    if not guess.shape[-1]:
        hit = torch.zeros_like(known)
    else:
        hit = known & (guess.argmax(dim=-1) == slot)
    return torch.stack([hit.to(guess.dtype), log_s / 4], dim=-1)


def _at(values: Tensor, slot: Tensor, missing: float) -> Tensor:
    """Values (…, K) at the slots (…,), ``missing`` where a slot is -1."""
    if not values.shape[-1]:
        return torch.full(slot.shape, missing, dtype=values.dtype, device=values.device)
    found = values.gather(-1, slot.clamp(min=0)[..., None])[..., 0]
    return torch.where(slot >= 0, found, torch.full_like(found, missing))
