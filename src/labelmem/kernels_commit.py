# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""How a label combiner remembers a step of many streams: their states, scores and misses."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.kernels_triton import tl, triton

__all__ = ["keep_rows", "keep_scores"]


def keep_rows(mask: Tensor, new: Tensor, old: Tensor) -> None:
    """Put the rows of ``old`` into ``new`` (n, …) where the mask is False; others cost nothing."""
    size = old[0].numel()
    _keep[(len(old), triton.cdiv(size, 4096))](mask, new, old, size, BLOCK=4096)


def keep_scores(
    mask: Tensor, y: Tensor, scores: tuple[Tensor, Tensor], kept: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Put the scores r and s (n, W) into those that are kept; (n, 2) whether they missed y (n,).

    Parameters
    ----------
    kept
        (n, A) r and s one step ago, slot 1 + y of label y, and (n, 2) whether they missed. All stay
        as they are where the mask is False.
    """
    r, s = (x.contiguous() for x in scores)
    (n, width), slots = r.shape, kept[0].shape[1]
    missed = torch.empty_like(kept[2])
    _scores[(n, 2)](mask, y, r, s, *kept, missed, width, slots, BLOCK=4096, num_warps=8)
    return missed


@triton.jit
def _keep(mask, new, old, size, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if tl.load(mask + row):
        return
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = place < size
    tl.store(new + row * size + place, tl.load(old + row * size + place, mask=there), mask=there)


@triton.jit
def _scores(mask, y, r, s, old_r, old_s, old_missed, missed, width, slots, BLOCK: tl.constexpr):
    row, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = row * 2 + which
    if tl.load(mask + row) == 0:
        tl.store(missed + at, tl.load(old_missed + at))
        return
    source, target = r, old_r
    if which == 1:
        source, target = s, old_s
    place = tl.arange(0, BLOCK)
    high = tl.full((BLOCK,), -1.0, tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, width, BLOCK):
        label = first + place
        there = label < width
        score = tl.load(source + row * width + label, mask=there, other=-1.0)
        tl.store(target + row * slots + 1 + label, score, mask=there)
        where = tl.where(score > high, label, where)
        high = tl.maximum(high, score)
    top = tl.max(high, axis=0)
    best = tl.min(tl.where(high == top, where, 2147483647), axis=0)
    hit = (best == tl.load(y + row)) & (top > 0)
    tl.store(missed + at, tl.where(hit, 0.0, 1.0))
