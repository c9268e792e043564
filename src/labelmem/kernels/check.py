# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What is looked at before labels are learned, in one kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["checked_many"]


def checked_many(
    fine: Tensor, y: Tensor, mask: Tensor, known: int, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`labelmem.lockstep.recording.checked`."""
    answers = torch.empty(3, dtype=torch.bool, device=y.device)
    labels, seen = torch.empty_like(y), torch.empty_like(mask)
    doubts = triton.next_power_of_2(len(fine))
    told = (fine, y, mask, answers, labels, seen, len(fine), len(y), known, width)
    _check[(1,)](*told, DOUBTS=doubts, BLOCK=1024, num_warps=8)
    return answers, labels, seen


@triton.jit
def _check(
    fine, y, mask, answers, labels, seen, doubts, n, known, width,
    DOUBTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place, doubt = tl.arange(0, BLOCK), tl.arange(0, DOUBTS)
    believed = tl.load(fine + doubt, mask=doubt < doubts, other=1).to(tl.int32)
    low, own, beyond = place * 0, place * 0, place * 0
    for first in range(0, n, BLOCK):
        stream = first + place
        label = tl.load(y + stream, mask=stream < n, other=0)
        learns = tl.load(mask + stream, mask=stream < n, other=0).to(tl.int32)
        low = tl.maximum(low, (label < 0).to(tl.int32))
        own = tl.maximum(own, (label >= known).to(tl.int32) * learns)
        beyond = tl.maximum(beyond, (label >= width).to(tl.int32) * learns)
    well = tl.min(believed, axis=0) * (1 - tl.max(beyond, axis=0))
    whole = 1 - tl.max(low, axis=0)
    tl.store(answers, well != 0)
    tl.store(answers + 1, whole != 0)
    tl.store(answers + 2, tl.max(own, axis=0) == 0)
    for first in range(0, n, BLOCK):
        stream = first + place
        there = stream < n
        label = tl.load(y + stream, mask=there, other=0)
        learns = tl.load(mask + stream, mask=there, other=0).to(tl.int32)
        tl.store(labels + stream, tl.maximum(label, 0), mask=there)
        tl.store(seen + stream, learns * well * whole != 0, mask=there)
