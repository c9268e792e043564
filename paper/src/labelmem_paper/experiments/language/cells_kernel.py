# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""All steps of a piece in one kernel, which never looks at a vector.

A cell is the sum of the h's written to it. So its products with all h's of the piece are known
beforehand for the cells as they stand, and a write of h adds the products of h with the others, and
to the squared length what the square of a sum says. One program per stream takes step after step on
these numbers alone; the vectors follow at the end, in one product of matrices.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem.config import MemoryConfig
from labelmem.kernels.triton import tl, triton
from labelmem_paper.experiments.language.pieces import Piece

__all__ = ["Held", "take_steps"]

Held = dict[str, Tensor]
"""The cells without the spare one, by the names that :class:`Cells` has for them."""


def take_steps(
    held: Held, time: Tensor, piece: Piece, part: slice, config: MemoryConfig, theta: float,
    ratio: float,
) -> tuple[Held, Tensor, Tensor] | None:  # fmt: skip
    """Read, mix and write at the steps ``part`` of a piece, in order.

    Parameters
    ----------
    held
        Not changed.
    time
        () steps that were taken before.
    ratio
        How many times more likely than others a word must be to be left unwritten.

    Returns
    -------
    The cells afterwards, and (n, C, K) their words and s before each step. None where a cell nearly
    vanished because an h was written to its opposite: the square of a sum is no good there.
    """
    h, y = piece.h[:, part].contiguous(), piece.y[:, part].contiguous()
    (n, steps), cells = y.shape, held["label"].shape[1]
    # Kernels are compiled anew for numbers that 16 does not divide: the last piece needs no other.
    wide = pad(h, (0, 0, 0, -steps % 16))
    dots, between = held["v"] @ wide.mT, wide @ wide.mT
    small = ("inverse", "alpha", "prior", "label", "written")
    new = {name: held[name].clone(memory_format=torch.contiguous_format) for name in small}
    words, s = y.new_empty(n, steps, cells), h.new_empty(n, steps, cells)
    place, begun = y.new_full((n, steps), -1), y.new_full((n, cells), -1)
    doubt = torch.zeros(n, dtype=torch.int32, device=y.device)
    logs = (x[:, part].contiguous() for x in (piece.log_r, piece.log_r_y, piece.log_r_other))
    padded = triton.next_power_of_2(cells)
    _steps[(n,)](
        *logs, y, h.norm(dim=2), between, dots, *new.values(), time,
        torch.full_like(time, steps), words, s, place, begun, doubt, cells, dots.shape[2],
        piece.log_r.shape[2], theta, ratio, config.lam, config.delta, config.decay,
        CELLS=padded, AHEAD=1024, num_warps=min(16, max(4, padded // 128)), num_stages=1,
    )  # fmt: skip
    if bool(doubt.any()):
        return None
    order = torch.arange(max(cells, steps), device=y.device)
    wrote = (place[:, None] == order[:cells, None]) & (order[:steps] >= begun[..., None])
    kept = held["v"] * (begun < 0)[..., None]
    new["v"] = torch.baddbmm(kept, wrote.to(h.dtype), h)
    # As it is, so that what was rounded on the way does not add up from piece to piece.
    inverse = new["v"].norm(dim=2).clamp(min=1e-20).reciprocal()
    new["inverse"] = inverse.masked_fill(new["label"] < 0, 0.0)
    return new, words, s


@triton.jit
def _cell_of(own, name, written, mine, there, cell, CELLS: tl.constexpr):
    """Where a word is kept, and whether it is there already.

    If not, it is the cell written longest ago, or a free one.
    """
    slot = tl.min(tl.where(name == own, cell, CELLS), axis=0)
    known = slot < CELLS
    if slot == CELLS:
        last = tl.load(written + mine, mask=there, other=0)
        last = tl.where(there, last, 9223372036854775807)
        oldest = tl.min(last, axis=0)
        slot = tl.min(tl.where(last == oldest, cell, CELLS), axis=0)
    return slot, known


@triton.jit
def _add_products(dots, between, to, now, stride, known, AHEAD: tl.constexpr):
    """A cell's products with all steps, once the h of step ``now`` is added to it.

    Nobody looks at products with earlier steps; they are kept up for even loads.
    """
    for first in range(0, stride, AHEAD):
        step = first + tl.arange(0, AHEAD)
        old = tl.load(dots + to * stride + step, mask=(step < stride) & known, other=0.0)
        added = tl.load(between + now * stride + step, mask=step < stride)
        tl.store(dots + to * stride + step, old + added, mask=step < stride)


@triton.jit
def _steps(
    log_r, log_r_y, log_r_other, y, norm, between, dots, inverse, alpha, prior, label, written,
    time, steps, words_out, s_out, place_out, begun, doubt, cells, stride, vocabulary,
    theta, ratio, lam, delta, decay, CELLS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cell = tl.arange(0, CELLS)
    there = cell < cells
    mine = row * cells + cell
    many, now = tl.load(steps), tl.load(time)
    for t in range(0, many):
        at = row * many + t
        own, size = tl.load(y + at), tl.load(norm + at)
        r_y, r_other = tl.load(log_r_y + at), tl.load(log_r_other + at)
        name = tl.load(label + mine, mask=there, other=-1)
        alive = name >= 0
        # First of all, as it comes from farthest away.
        r = tl.load(log_r + at * vocabulary + name, mask=alive, other=-float("inf"))
        cos = tl.load(dots + mine * stride + t, mask=alive, other=0.0)
        cos *= tl.load(inverse + mine, mask=alive, other=0.0) / tl.where(size > 0, size, 1.0)
        before = tl.load(prior + mine, mask=alive, other=0.0)
        score = tl.where(alive, before + lam * cos, -float("inf"))
        top = tl.max(score, axis=0)
        e = tl.exp(score - tl.where(top > -float("inf"), top, 0.0))
        total = tl.sum(e, axis=0)
        s = e / tl.where(total > 0, total, 1.0)
        out = at * cells + cell
        tl.store(words_out + out, tl.maximum(name, 0), mask=there)
        tl.store(s_out + out, s, mask=there)
        # The best other word is the model's best, or one in memory: mixing raises no others.
        others = tl.where(name == own, 0.0, (1 - theta) * tl.exp(r) + theta * s)
        best = tl.maximum((1 - theta) * tl.exp(r_other), tl.max(others, axis=0))
        s_y = tl.sum(tl.where(name == own, s, 0.0), axis=0)
        p_y = (1 - theta) * tl.exp(r_y) + theta * s_y
        if p_y < best * ratio:
            slot, known = _cell_of(own, name, written, mine, there, cell, CELLS)
            to = row * cells + slot
            length = 1 / tl.where(known, tl.load(inverse + to), 1.0)
            apart = tl.where(known, length * length, 0.0) + size * size
            square = apart + tl.where(known, 2 * tl.load(dots + to * stride + t), 0.0)
            weight = tl.where(known, decay * tl.load(alpha + to), 0.0) + 1
            # What was loaded is overwritten now: not before all threads have it.
            tl.debug_barrier()
            if square < 0.01 * apart:
                tl.store(doubt + row, 1)
            tl.store(inverse + to, 1 / tl.sqrt(tl.maximum(square, 1e-37)))
            tl.store(alpha + to, weight)
            tl.store(prior + to, delta * tl.log(weight))
            tl.store(label + to, own)
            tl.store(written + to, now + t)
            tl.store(place_out + at, slot)
            if not known:
                tl.store(begun + to, t)
            _add_products(dots, between, to, row * stride + t, stride, known, AHEAD)
        tl.debug_barrier()  # the next step sees what this one wrote
