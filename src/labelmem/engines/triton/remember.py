# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""How a stream combiner remembers the labels of many streams, in one kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.engines.triton.look import cut_log
from labelmem.engines.triton.runtime import tl, triton
from labelmem.trust import recording

__all__ = ["remember_many"]


def remember_many(
    read: Any, guess: Tensor, best: Tensor, y: Tensor, mask: Tensor | None, rates: Tensor,
    new: Tensor, old: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The next mu, echo and past: of ``new`` and how the labels y (n,) came, or the ``old`` ones.

    In a recording they take the place of the old ones.

    Parameters
    ----------
    guess, best
        Of the step: see :func:`labelmem.engines.triton.stream.decide_many`.
    rates
        How fast the running shares forget.
    new
        (n, hidden) mu where the mask is true.
    """
    n, k = read.label.shape
    seen = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
    made = old
    if not recording():
        made = torch.empty_like(old[0]), torch.empty_like(old[1]), torch.empty_like(old[2])
    _remember[(n,)](
        read.label, read.past.age, guess, best, y.contiguous(), seen, rates, new, *old, *made, k,
        H=new.shape[1], HP=triton.next_power_of_2(new.shape[1]), RATES=len(rates),
        PAST=old[2].shape[1], WIDE=triton.next_power_of_2(old[2].shape[1]),
        CELLS=triton.next_power_of_2(k),
    )  # fmt: skip
    return made


@triton.jit
def _remember(
    label, age, guess, best, y, seen, rates, new_mu, mu, echo, past, mu_out, echo_out, past_out, k,
    H: tl.constexpr, HP: tl.constexpr, RATES: tl.constexpr, PAST: tl.constexpr,
    WIDE: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    learns = tl.load(seen + row) != 0
    unit = tl.arange(0, HP)
    old = tl.load(mu + row * H + unit, mask=unit < H)
    new = tl.load(new_mu + row * H + unit, mask=unit < H)
    tl.store(mu_out + row * H + unit, tl.where(learns, new, old), mask=unit < H)
    cell = tl.arange(0, CELLS)
    there = cell < k
    own = tl.load(y + row)
    name = tl.load(label + row * k + cell, mask=there, other=-1)
    slot = tl.min(tl.where(name == own, cell, CELLS), axis=0)
    known = slot < CELLS
    believed = tl.load(guess + row * k + cell, mask=there, other=-1.0)
    first = tl.min(tl.where(believed == tl.max(believed, axis=0), cell, CELLS), axis=0)
    at = row * k + tl.where(known, slot, 0)
    log_s = tl.where(known, tl.maximum(cut_log(tl.load(guess + at)), -8.0), -8.0)
    hit = tl.where(known & (first == slot), 1.0, 0.0)
    tl.store(echo_out + row * 2, tl.where(learns, hit, tl.load(echo + row * 2)))
    tl.store(echo_out + row * 2 + 1, tl.where(learns, log_s / 4, tl.load(echo + row * 2 + 1)))
    fresh = tl.where(known, 0.0, 1.0)
    again = tl.where(known & (tl.load(age + at) == 1), 1.0, 0.0)
    missed = tl.where(tl.load(best + row) == own, 0.0, 1.0)
    column = tl.arange(0, WIDE)
    shares = (column >= 3) & (column < PAST)
    before = tl.load(past + row * PAST + column, mask=column < PAST, other=0.0)
    rate = tl.load(rates + (column - 3) % RATES, mask=shares, other=0.0)
    value = rate * before + (1 - rate) * tl.where(column < 3 + RATES, fresh, again)
    value = tl.where(column == 0, before + 1, value)
    value = tl.where(column == 1, fresh, value)
    value = tl.where(column == 2, missed, value)
    tl.store(past_out + row * PAST + column, tl.where(learns, value, before), mask=column < PAST)
