# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""How a label combiner remembers a step of many streams whose states and scores are in place."""

from __future__ import annotations

from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["Remembered", "keep_many"]

_PROGRAMS = 4  # for each stream: mostly most of them find nothing to do, and even that takes time

Remembered = tuple[Tensor, Tensor, Tensor]
"""mu (n, A, hidden), r and s (n, A), slot 1 + y of label y."""


def keep_many(
    mask: Tensor, y: Tensor, new: Remembered, old: Remembered, missed: Tensor, width: int
) -> None:
    """Make ``new`` what is remembered, and find whether r and s missed y (n,).

    Where the mask is False, the rows of ``old`` are put into ``new`` and ``missed`` (n, 2) stays.

    Parameters
    ----------
    width
        The number of labels that have scores.
    """
    n, slots, hidden = new[0].shape
    told = (mask, y, *new, *old, missed, width, slots, slots * hidden)
    _keep[(n, _PROGRAMS)](*told, EACH=_PROGRAMS, BLOCK=2048, num_warps=8)


@triton.jit
def _copy(new, old, row, size, which, EACH: tl.constexpr, BLOCK: tl.constexpr):
    """One of the programs' part of a row."""
    for first in range(which * BLOCK, size, EACH * BLOCK):
        place = first + tl.arange(0, BLOCK)
        kept = tl.load(old + row * size + place, mask=place < size)
        tl.store(new + row * size + place, kept, mask=place < size)


@triton.jit
def _keep(
    mask, y, mu, r, s, old_mu, old_r, old_s, missed, width, slots, size,
    EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(mask + row) == 0:
        _copy(mu, old_mu, row, size, which, EACH, BLOCK)
        _copy(r, old_r, row, slots, which, EACH, BLOCK)
        _copy(s, old_s, row, slots, which, EACH, BLOCK)
        return
    if which > 1:
        return
    scores = r
    if which == 1:
        scores = s
    scores += row * slots + 1
    place = tl.arange(0, BLOCK)
    high = tl.full((BLOCK,), -1.0, tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, width, BLOCK):
        label = first + place
        score = tl.load(scores + label, mask=label < width, other=-1.0)
        where = tl.where(score > high, label, where)
        high = tl.maximum(high, score)
    top = tl.max(high, axis=0)
    best = tl.min(tl.where(high == top, where, 2147483647), axis=0)
    hit = (best == tl.load(y + row)) & (top > 0)
    tl.store(missed + row * 2 + which, tl.where(hit, 0.0, 1.0))
