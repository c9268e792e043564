# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What a read tells of how labels came so far, for many streams; and s spread over all labels."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import torch
from torch import Tensor

from labelmem.engines.triton.runtime import tl, triton

__all__ = ["block_cosines", "past_of", "spread_many"]

_FORM = {"TILE": 2048, "num_warps": 4}
"""Numbers of one block of the cells that a program of cosines holds at a time, and its warps."""
_BLOCK = 2048  # labels at a time


def block_cosines(
    v: Tensor, used: Tensor, k: int, h: Tensor, blocks: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Cosine (n, k) of h with the first ``k`` cells; of each block, and its length, (n, k, B).

    Parameters
    ----------
    v, used
        (n, positions, d) the cells, and (n,) how many there are; others are not even looked at.
    """
    n, held, dim = v.shape
    cosine = h.new_empty(n, k)
    own, size = (h.new_empty(n, k, len(blocks)) for _ in range(2))
    parts = blocks or (dim,)
    wide = triton.next_power_of_2(max(parts))
    block, align = max(1, _FORM["TILE"] // wide), gcd(16, *parts)
    _block_cosines[(n, triton.cdiv(k, block))](
        h.contiguous(), v, used, _edges(parts, align, h.device), cosine, own, size, held, k,
        B=len(parts), EACH=len(blocks) > 0, ALIGN=align, D=dim, WIDE=wide, BLOCK=block,
        num_warps=_FORM["num_warps"],
    )  # fmt: skip
    return cosine, own, size


def past_of(
    cells: dict[str, Tensor], time: Tensor, fades: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Writes, observations since the first one (n, k), and faded rates (n, k, 2)."""
    n, held = cells["label"].shape
    writes, first = (cells["writes"].new_empty(n, k) for _ in range(2))
    rates = cells["rates"].new_empty(n, k, len(fades))
    stored = (cells["writes"], cells["born"], cells["written"], cells["rates"], time, fades)
    wide = triton.next_power_of_2(k)
    _past[(n,)](*stored, writes, first, rates, held, k, FADES=len(fades), BLOCK=wide)
    return writes, first, rates


def spread_many(label: Tensor, values: Tensor, width: int) -> Tensor:
    """Values (n, k) at their labels (n, k), no two of a stream the same, as (n, width)."""
    n, k = label.shape
    out = values.new_empty(n, width)
    told = (label, values.contiguous(), out, k, width)
    _spread[(n,)](*told, CELLS=triton.next_power_of_2(k), BLOCK=_BLOCK, num_warps=8)
    return out


@lru_cache(maxsize=64)
def _edges(blocks: tuple[int, ...], align: int, device: torch.device) -> Tensor:
    """(B + 1,) where blocks begin and end, by ``align``. Made once: it would wait for the device.

    That all are multiples of something is what lets a kernel fetch several numbers at once.
    """
    with torch.inference_mode(False):
        ends = torch.tensor((0, *blocks), dtype=torch.int32).cumsum(0, dtype=torch.int32)
        return (ends // align).to(device)


@triton.jit
def _block_cosines(
    h, v, used, edges, cosine, own, size, held, k,
    B: tl.constexpr, EACH: tl.constexpr, ALIGN: tl.constexpr, D: tl.constexpr,
    WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cell = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = cell < k
    alive = there & (cell < tl.load(used + row))
    part = tl.arange(0, WIDE)
    base, to = v + row * held * D, row * k + cell
    zero = tl.zeros((BLOCK,), tl.float32)
    if tl.max(alive.to(tl.int32), axis=0) == 0:
        tl.store(cosine + to, zero, mask=there)
        if EACH:
            for b in tl.static_range(B):
                tl.store(own + to * B + b, zero, mask=there)
                tl.store(size + to * B + b, zero, mask=there)
        return
    # A block is a tile of its own: what belongs to others is not even looked at.
    whole_dot, whole_size, whole_long = zero, zero, 0.0
    for b in tl.static_range(B):
        column = tl.load(edges + b) * ALIGN + part
        inside = column < tl.load(edges + b + 1) * ALIGN
        x = tl.load(h + row * D + column, mask=inside, other=0.0)
        place = cell[:, None] * D + column[None, :]
        stored = tl.load(base + place, mask=alive[:, None] & inside[None, :], other=0.0)
        dot, far = tl.sum(stored * x[None, :], axis=1), tl.sum(stored * stored, axis=1)
        long = tl.sum(x * x, axis=0)
        whole_dot, whole_size, whole_long = whole_dot + dot, whole_size + far, whole_long + long
        if EACH:
            both = tl.sqrt(far) * tl.sqrt(long)
            tl.store(own + to * B + b, dot / tl.where(both > 0, both, 1.0), mask=there)
            tl.store(size + to * B + b, tl.sqrt(far), mask=there)
    both = tl.sqrt(whole_size) * tl.sqrt(whole_long)
    tl.store(cosine + to, whole_dot / tl.where(both > 0, both, 1.0), mask=there)


@triton.jit
def _past(
    writes, born, written, rates, time, fades, writes_out, first_out, rates_out, held, k,
    FADES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cell = tl.arange(0, BLOCK)
    there = cell < k
    here, to = row * held + cell, row * k + cell
    now = tl.load(time + row)
    tl.store(writes_out + to, tl.load(writes + here, mask=there), mask=there)
    tl.store(first_out + to, now - tl.load(born + here, mask=there) + 1, mask=there)
    gone = tl.maximum(now - tl.load(written + here, mask=there), 0).to(tl.float32)
    for fade in tl.static_range(FADES):
        rate = tl.load(rates + here * FADES + fade, mask=there)
        faded = rate * tl.exp(gone * tl.log(tl.load(fades + fade)))
        tl.store(rates_out + to * FADES + fade, faded, mask=there)


@triton.jit
def _spread(label, values, out, k, width, CELLS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    out += row * width
    for first in range(0, width, BLOCK):
        y = first + tl.arange(0, BLOCK)
        tl.store(out + y, tl.zeros((BLOCK,), tl.float32), mask=y < width)
    tl.debug_barrier()  # all of the row is zero before anything is put there
    cell = tl.arange(0, CELLS)
    name = tl.load(label + row * k + cell, mask=cell < k, other=-1)
    value = tl.load(values + row * k + cell, mask=cell < k, other=0.0)
    tl.store(out + name, value, mask=(name >= 0) & (name < width))
