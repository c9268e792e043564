# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""How a label combiner remembers a step of many streams whose states and scores are in place."""

from __future__ import annotations

from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["Remembered", "keep_many"]

_PROGRAMS = 4  # for each stream: mostly they find nothing to do, and even that takes time

Remembered = tuple[Tensor, Tensor, Tensor]
"""mu (n, A, hidden), r and s (n, A), slot 1 + y of label y."""


def keep_many(
    mask: Tensor,
    y: Tensor,
    best: tuple[Tensor, Tensor],
    new: Remembered,
    old: Remembered,
    missed: Tensor,
) -> None:
    """Make ``new`` what is remembered, and note whether r and s missed y (n,).

    Where the mask is False, the rows of ``old`` are put into ``new`` and ``missed`` (n, 2) stays.

    Parameters
    ----------
    best
        The labels (n,) with the highest r and s, -1 for none.
    """
    n, slots, hidden = new[0].shape
    told = (mask, y, *best, *new, *old, missed, slots, slots * hidden)
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
    mask, y, best_r, best_s, mu, r, s, old_mu, old_r, old_s, missed, slots, size,
    EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, which = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(mask + row) == 0:
        _copy(mu, old_mu, row, size, which, EACH, BLOCK)
        _copy(r, old_r, row, slots, which, EACH, BLOCK)
        _copy(s, old_s, row, slots, which, EACH, BLOCK)
    elif which == 0:
        label = tl.load(y + row)
        tl.store(missed + row * 2, (tl.load(best_r + row) != label).to(tl.float32))
        tl.store(missed + row * 2 + 1, (tl.load(best_s + row) != label).to(tl.float32))
