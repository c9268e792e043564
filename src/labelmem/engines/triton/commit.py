# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""How a label combiner remembers a step of many streams, in one pass over its scores."""

from __future__ import annotations

from torch import Tensor

from labelmem.engines.triton.runtime import tl, triton

__all__ = ["keep_many"]

_PROGRAMS = 4  # for each stream: mostly they find little to do, and even that takes time


def keep_many(
    mask: Tensor,
    y: Tensor,
    scores: tuple[Tensor, Tensor],
    kept: tuple[Tensor, Tensor],
    new_mu: Tensor,
    old_mu: Tensor,
    missed: Tensor,
) -> None:
    """Remember r and s (n, W) in slots (n, A), and whether they missed y (n,).

    Where the mask is False they and ``missed`` (n, 2) stay, and the row of ``old_mu`` (n, A,
    hidden) is put into ``new_mu``. Slot 1 + y is that of label y.
    """
    (n, slots, hidden), width = new_mu.shape, scores[0].shape[1]
    r, s = (x.contiguous() for x in scores)
    told = (mask, y, r, s, *kept, new_mu, old_mu, missed, width, slots, slots * hidden)
    _keep[(n, _PROGRAMS)](*told, EACH=_PROGRAMS, BLOCK=2048, num_warps=8)


@triton.jit
def _put(scores, kept, y, width, BLOCK: tl.constexpr):
    """Remember a row of scores; 1 if its first best label is not y, or all are zero."""
    place = tl.arange(0, BLOCK)
    high, first = tl.zeros((BLOCK,), tl.float32), place
    for start in range(0, width, BLOCK):
        label = start + place
        value = tl.load(scores + label, mask=label < width, other=0.0)
        tl.store(kept + 1 + label, value, mask=label < width)
        first, high = tl.where(value > high, label, first), tl.maximum(high, value)
    top = tl.max(high, axis=0)
    best = tl.min(tl.where(high == top, first, 2147483647), axis=0)
    return tl.where((top > 0) & (best == y), 0.0, 1.0)


@triton.jit
def _keep(
    mask, y, r, s, kept_r, kept_s, new_mu, old_mu, missed, width, slots, size,
    EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(mask + row) == 0:
        for first in range(which * BLOCK, size, EACH * BLOCK):
            place = first + tl.arange(0, BLOCK)
            old = tl.load(old_mu + row * size + place, mask=place < size)
            tl.store(new_mu + row * size + place, old, mask=place < size)
    else:
        label = tl.load(y + row)
        if which == 0:
            wrong = _put(r + row * width, kept_r + row * slots, label, width, BLOCK)
            tl.store(missed + row * 2, wrong)
        if which == 1:
            wrong = _put(s + row * width, kept_s + row * slots, label, width, BLOCK)
            tl.store(missed + row * 2 + 1, wrong)
