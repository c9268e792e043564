# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""How a label combiner remembers a step of many streams: their states, scores and misses."""

from __future__ import annotations

from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["keep_rows", "keep_scores"]

_PROGRAMS = 4  # for each stream: mostly they find nothing to do, and even that takes time


def keep_rows(mask: Tensor, new: Tensor, old: Tensor) -> None:
    """Put the rows of ``old`` into ``new`` (n, …) where the mask is False; others cost nothing."""
    size = old[0].numel()
    _keep[(len(old), _PROGRAMS)](mask, new, old, size, EACH=_PROGRAMS, BLOCK=2048)


def keep_scores(
    mask: Tensor, y: Tensor, scores: tuple[Tensor, Tensor], kept: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Put the scores r and s (n, W) into those that are kept; (n, 2) whether they missed y (n,).

    Parameters
    ----------
    kept
        (n, A) r and s one step ago, slot 1 + y of label y, and (n, 2) whether they missed. All stay
        as they are where the mask is False; what comes back is the last of them.
    """
    r, s = (x.contiguous() for x in scores)
    (n, width), slots = r.shape, kept[0].shape[1]
    _scores[(n, 2)](mask, y, r, s, *kept, width, slots, BLOCK=2048, num_warps=8)
    return kept[2]


@triton.jit
def _keep(mask, new, old, size, EACH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if tl.load(mask + row):
        return
    for first in range(tl.program_id(1) * BLOCK, size, EACH * BLOCK):
        place = first + tl.arange(0, BLOCK)
        there = place < size
        kept = tl.load(old + row * size + place, mask=there)
        tl.store(new + row * size + place, kept, mask=there)


@triton.jit
def _scores(mask, y, r, s, old_r, old_s, missed, width, slots, BLOCK: tl.constexpr):
    row, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(mask + row) == 0:
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
    tl.store(missed + row * 2 + which, tl.where(hit, 0.0, 1.0))
