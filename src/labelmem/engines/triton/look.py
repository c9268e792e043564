# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What a stream combiner sees of a step, for many streams: ``stream_look.py`` in one kernel.

The features of the labels are made where they are used (:func:`features_at`): nobody else asks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.engines.triton.runtime import tl, triton

__all__ = ["cut_log", "features_at", "signals_many"]

_BLOCK = 2048  # labels at a time


def signals_many(
    past: Tensor, r: Tensor, read: Any, mean: Tensor, spread: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Scaled signals (n, U), r of the labels in memory (n, K), and r's best label (n,).

    Parameters
    ----------
    past
        (n, PAST) what the combiner remembers of how labels came.
    r
        (n, W) the model's belief. While this works the labels in memory are marked in it.
    read
        The memory's answer, with one cell per label; K is above 0.
    mean, spread
        (U,) the units of the signals. The best label is -1 where all of r is zero.
    """
    (n, k), width, parts = read.label.shape, r.shape[1], read.past.cosine.shape[2]
    signals, inside = past.new_empty(n, len(mean)), r.new_empty(n, k)
    best = torch.empty(n, dtype=torch.int64, device=r.device)
    told = (read.label, read.score, read.past.cosine, read.past.size)
    _signals[(n,)](
        past, r, *told, mean, spread, signals, inside, best, width, k,
        PAST=past.shape[1], B=parts, U=len(mean), WIDE=triton.next_power_of_2(len(mean)),
        CELLS=triton.next_power_of_2(k), BLOCK=_BLOCK, num_warps=8,
    )  # fmt: skip
    return signals, inside, best


@triton.jit
def cut_log(p):
    """The logarithm of probabilities, cut at -15."""
    return tl.maximum(tl.log(tl.maximum(p, 1e-30)), -15.0)


@triton.jit
def _summed_up(believed, width, BLOCK: tl.constexpr):
    """The largest of a row's probabilities, the first label that has it, and their entropy."""
    place = tl.arange(0, BLOCK)
    high = tl.full((BLOCK,), -1.0, tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    spent = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, width, BLOCK):
        y = first + place
        r_y = tl.load(believed + y, mask=y < width, other=0.0)
        spent -= r_y * cut_log(r_y)
        where = tl.where(r_y > high, y, where)
        high = tl.maximum(high, r_y)
    top = tl.max(high, axis=0)
    best = tl.min(tl.where(high == top, where, 2147483647), axis=0)
    return top, best, tl.sum(spent, axis=0)


@triton.jit
def _largest(believed, width, BLOCK: tl.constexpr):
    """The largest of a row, 0 if none is above that."""
    place = tl.arange(0, BLOCK)
    high = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, width, BLOCK):
        y = first + place
        high = tl.maximum(high, tl.load(believed + y, mask=y < width, other=0.0))
    return tl.max(high, axis=0)


@triton.jit
def _signals(
    past, r, label, score, cosine, size, mean, spread, signals, inside_out, best_out, width, k,
    PAST: tl.constexpr, B: tl.constexpr, U: tl.constexpr, WIDE: tl.constexpr,
    CELLS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    believed = r + row * width
    top, best, entropy = _summed_up(believed, width, BLOCK)
    tl.store(best_out + row, tl.where(top > 0, best, -1).to(tl.int64))
    cell = tl.arange(0, CELLS)
    there = cell < k
    name = tl.load(label + row * k + cell, mask=there, other=-1)
    alive = name >= 0
    inside = tl.load(believed + name, mask=alive, other=0.0)
    tl.store(inside_out + row * k + cell, inside, mask=there)
    # The largest r of the others: those in memory are marked by a sign, and then put back.
    tl.debug_barrier()
    tl.store(believed + name, -inside, mask=alive)
    tl.debug_barrier()
    outside = _largest(believed, width, BLOCK)
    tl.debug_barrier()
    tl.store(believed + name, inside, mask=alive)
    s = tl.load(score + row * k + cell, mask=there, other=0.0)
    labels = tl.sum(tl.where(alive, 1.0, 0.0), axis=0)
    holds = tl.where(labels > 0, 1.0, 0.0)
    overlap = tl.sum(inside, axis=0)
    left = tl.maximum(1 - overlap, 1e-6)
    entropy_inside = -tl.sum(inside * cut_log(inside), axis=0)
    rest = tl.maximum((entropy - entropy_inside) / left + tl.log(left), 0.0)
    entropy_s = -tl.sum(s * cut_log(s), axis=0)
    column = tl.arange(0, WIDE)
    seen = column < U
    # The running shares lie behind the others, the label count in front.
    shift = column - 10
    value = tl.load(past + row * PAST + shift, mask=(shift >= 1) & (shift < PAST), other=0.0)
    count = tl.load(past + row * PAST)
    value = tl.where(column == 0, tl.log(count + 1) / 3, value)
    value = tl.where(column == 1, tl.log(labels + 1) / 3, value)
    value = tl.where(column == 2, holds, value)
    value = tl.where(column == 3, entropy / 5, value)
    value = tl.where(column == 4, cut_log(top) / 3, value)
    value = tl.where(column == 5, rest / 5, value)
    value = tl.where(column == 6, tl.minimum(cut_log(outside) - tl.log(left), 0.0) / 3, value)
    value = tl.where(column == 7, entropy_s / 2, value)
    value = tl.where(column == 8, cut_log(tl.max(s, axis=0)) * holds / 2, value)
    value = tl.where(column == 9, overlap, value)
    value = tl.where(column == 10, tl.log(left) / 5, value)
    for b in tl.static_range(B):
        at = (row * k + cell) * B + b
        cos = tl.load(cosine + at, mask=alive, other=-1.0)
        far = tl.load(size + at, mask=alive, other=0.0)
        match = tl.sum(tl.maximum(cos * far, 0.0), axis=0)
        value = tl.where(column == U - 2 * B + b, tl.max(cos, axis=0) * holds, value)
        value = tl.where(column == U - B + b, tl.log(1 + match) / 2, value)
    middle = tl.load(mean + column, mask=seen, other=0.0)
    unit = tl.load(spread + column, mask=seen, other=1.0)
    tl.store(signals + row * U + column, (value - middle) / unit, mask=seen)


@triton.jit
def features_at(
    row, cell, k, alive, strength, age, writes, first, inside, rates, cosine, size, mean, spread,
    B: tl.constexpr, F: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Scaled features (cells, WIDE) of the labels at these cells."""
    at = row * k + cell
    # The clamp keeps an unlikely age, of a time to come, from breaking a logarithm.
    now = tl.load(age + at, mask=alive, other=1)
    away = tl.maximum(now.to(tl.float32), 1.0)
    often = tl.load(writes + at, mask=alive, other=0).to(tl.float32)
    span = (tl.load(first + at, mask=alive, other=1) - now).to(tl.float32)
    usual = tl.maximum(span / tl.maximum(often - 1, 1.0), 1.0)
    regular = tl.where(often > 1, tl.log(usual) - tl.log(away), 0.0)
    weight = tl.log(tl.maximum(tl.load(strength + at, mask=alive, other=1.0), 1e-3))
    r_y = tl.load(inside + at, mask=alive, other=0.0)
    column = tl.arange(0, WIDE)[None, :]
    held = alive[:, None]
    to = at[:, None]
    rate = tl.load(rates + to * 2 + column - 5, mask=held & (column >= 5) & (column < 7), other=0.0)
    value = tl.log(rate + 0.01) / 2
    value = tl.where(column == 0, weight[:, None], value)
    value = tl.where(column == 1, (tl.log(away) / 2)[:, None], value)
    value = tl.where(column == 2, tl.where(away < 2, 1.0, 0.0)[:, None], value)
    value = tl.where(column == 3, (cut_log(r_y) / 5)[:, None], value)
    value = tl.where(column == 4, (regular / 2)[:, None], value)
    block = column - 7
    of_block = held & (block >= 0) & (block < B)
    cos = tl.load(cosine + to * B + block, mask=of_block, other=0.0)
    value = tl.where(of_block, cos, value)
    block = block - B
    of_block = held & (block >= 0) & (block < B)
    cos = tl.load(cosine + to * B + block, mask=of_block, other=0.0)
    far = tl.load(size + to * B + block, mask=of_block, other=0.0)
    value = tl.where(of_block, tl.log(1 + tl.maximum(cos * far, 0.0)), value)
    seen = column < F
    middle = tl.load(mean + column, mask=seen, other=0.0)
    unit = tl.load(spread + column, mask=seen, other=1.0)
    return tl.where(held & seen, (value - middle) / unit, 0.0)
