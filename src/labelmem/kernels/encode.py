# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What comes before the memory, for many streams: vectors of tokens, recurrent cells and keys.

Each is many small tensor operations over little, so a kernel of its own saves most of its time.
A token that there is none of makes NaN: a kernel cannot refuse it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from labelmem.kernels.triton import tl, triton

__all__ = ["gru_many", "history_step", "scaled_rows", "token_key", "token_vectors"]

_SHORT = 128  # inputs and states of a GRU that are worth one kernel for all of it


def token_vectors(tokens: Tensor, table: Tensor, start: Tensor, scale: float) -> Tensor:
    """Vectors (…, d) of tokens (…): rows of the table times ``scale``, or the start (d,)."""
    labels, dim = table.shape
    out = table.new_empty(*tokens.shape, dim)
    told = (tokens.contiguous(), table, start, out, labels, scale)
    if tokens.numel():
        _vectors[(tokens.numel(),)](*told, D=dim, WIDE=triton.next_power_of_2(dim), num_warps=1)
    return out


def gru_many(
    x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> Tensor:
    """The next state (n, d) of a GRU cell from x (n, e), the state (n, d) and its weights."""
    out = torch.empty_like(h, memory_format=torch.contiguous_format)
    (n, dim), size = h.shape, x.shape[1]
    if not h.numel():
        return out
    if max(dim, size) > _SHORT:
        given = (linear(x, w_ih, b_ih), linear(h, w_hh, b_hh), h.contiguous(), out, n * dim)
        _gates[(triton.cdiv(n * dim, 256),)](*given, D=dim, BLOCK=256, num_warps=2)
        return out
    grid = (triton.cdiv(n, 16), triton.cdiv(dim, 16))
    all_of_it = [t.contiguous() for t in (x, h, w_ih, w_hh, b_ih, b_hh)]
    _gru[grid](*all_of_it, out, n, D=dim, E=size, BLOCK=16, PART=32, num_warps=4)
    return out


def history_step(
    tokens: Tensor, table: Tensor, decays: Tensor, mix: Tensor, norm: float, prior: float,
    sums: Tensor, weights: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The next h (n, d), sums and weights: see :class:`labelmem.models.HistoryModel`."""
    (labels, dim), sums, weights = table.shape, sums.contiguous(), weights.contiguous()
    h, made = sums.new_empty(len(sums), dim), (torch.empty_like(sums), torch.empty_like(weights))
    told = (tokens.contiguous(), table, decays, mix, sums, weights, h, *made, labels, norm, prior)
    sizes = {"G": len(decays), "D": dim, "WIDE": triton.next_power_of_2(dim)}
    _history[(len(sums),)](*told, PRIOR=prior > 0, **sizes, num_warps=1)
    return h, *made


def token_key(
    now: Tensor, before: Tensor, table: Tensor, fade: float, pair: bool
) -> tuple[Tensor, Tensor]:
    """Directions of the tokens ``now`` (n,) and ``before`` (n, last - 1), and the next ``before``.

    See :class:`labelmem.keys.RecentTokens`. A token beyond the table takes its last row.
    """
    (size, dim), (n, older) = table.shape, before.shape
    key, tokens = table.new_empty(n, (1 + older + pair) * dim), torch.empty_like(before)
    told = (now.contiguous(), before.contiguous(), table, key, tokens, size, fade)
    sizes = {"LAST": 1 + older, "PAIR": pair, "D": dim, "WIDE": triton.next_power_of_2(dim)}
    _token_key[(n,)](*told, **sizes, num_warps=1)
    return key, tokens


def scaled_rows(h: Tensor, length: float) -> Tensor:
    """Rows (n, d) scaled to one length; zeros stay."""
    out = torch.empty_like(h, memory_format=torch.contiguous_format)
    wide = triton.next_power_of_2(h.shape[1])
    _scaled[(len(h),)](h.contiguous(), out, length, D=h.shape[1], WIDE=wide, num_warps=1)
    return out


@triton.jit
def _looked_up(table, token, part, labels, D: tl.constexpr):
    """A row of the table; zero for the start, NaN for what is no token."""
    known = (token >= 0) & (token < labels)
    row = tl.load(table + token * D + part, mask=(part < D) & known, other=0.0)
    return tl.where(known | (token == labels), row, float("nan"))


@triton.jit
def _vectors(tokens, table, start, out, labels, scale, D: tl.constexpr, WIDE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, WIDE)
    token = tl.load(tokens + at).to(tl.int64)
    vector = scale * _looked_up(table, token, part, labels, D)
    first = tl.load(start + part, mask=part < D, other=0.0)
    tl.store(out + at * D + part, tl.where(token == labels, first, vector), mask=part < D)


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _gates(from_input, from_state, h, out, size, D: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = place < size
    at = place // D * (3 * D) + place % D
    reset = tl.load(from_input + at, mask=there, other=0.0)
    reset = _sigmoid(reset + tl.load(from_state + at, mask=there, other=0.0))
    update = tl.load(from_input + at + D, mask=there, other=0.0)
    update = _sigmoid(update + tl.load(from_state + at + D, mask=there, other=0.0))
    x = tl.load(from_input + at + 2 * D, mask=there, other=0.0)
    x += reset * tl.load(from_state + at + 2 * D, mask=there, other=0.0)
    new = 2 * _sigmoid(2 * x) - 1
    old = tl.load(h + place, mask=there, other=0.0)
    tl.store(out + place, new + update * (old - new), mask=there)


@triton.jit
def _projected(
    x, weight, bias, stream, unit, n, SIZE: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
    PART: tl.constexpr,
):  # fmt: skip
    """(streams, units) what x (n, SIZE) puts into each of the three gates."""
    nothing = tl.zeros((BLOCK, BLOCK), tl.float32)
    reset = nothing + tl.load(bias + unit, mask=unit < D, other=0.0)[None, :]
    update = nothing + tl.load(bias + D + unit, mask=unit < D, other=0.0)[None, :]
    new = nothing + tl.load(bias + 2 * D + unit, mask=unit < D, other=0.0)[None, :]
    for first in range(0, SIZE, PART):
        part = first + tl.arange(0, PART)
        there = (stream < n)[:, None] & (part < SIZE)[None, :]
        row = tl.load(x + stream[:, None] * SIZE + part[None, :], mask=there, other=0.0)
        there = (part < SIZE)[:, None] & (unit < D)[None, :]
        column = weight + unit[None, :] * SIZE + part[:, None]
        each = tl.load(column, mask=there, other=0.0)
        reset = tl.dot(row, each, acc=reset, input_precision="tf32x3")
        each = tl.load(column + D * SIZE, mask=there, other=0.0)
        update = tl.dot(row, each, acc=update, input_precision="tf32x3")
        each = tl.load(column + 2 * D * SIZE, mask=there, other=0.0)
        new = tl.dot(row, each, acc=new, input_precision="tf32x3")
    return reset, update, new


@triton.jit
def _gru(
    x, h, w_ih, w_hh, b_ih, b_hh, out, n,
    D: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    stream = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    reset, update, new = _projected(x, w_ih, b_ih, stream, unit, n, E, D, BLOCK, PART)
    h_reset, h_update, h_new = _projected(h, w_hh, b_hh, stream, unit, n, D, D, BLOCK, PART)
    new = 2 * _sigmoid(2 * (new + _sigmoid(reset + h_reset) * h_new)) - 1
    place, there = stream[:, None] * D + unit[None, :], (stream < n)[:, None] & (unit < D)[None, :]
    old = tl.load(h + place, mask=there, other=0.0)
    tl.store(out + place, new + _sigmoid(update + h_update) * (old - new), mask=there)


@triton.jit
def _history(
    tokens, table, decays, mix, sums, weights, h, sums_out, weights_out, labels, norm, prior,
    PRIOR: tl.constexpr, G: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, WIDE)
    token = tl.load(tokens + row).to(tl.int64)
    e = _looked_up(table, token, part, labels, D)
    counts = tl.where(token == labels, 0.0, 1.0)
    total = tl.zeros((WIDE,), tl.float32)
    longest = 0.0
    for g in tl.static_range(G):
        at, decay = row * G + g, tl.load(decays + g)
        weight = decay * tl.load(weights + at) + counts
        tl.store(weights_out + at, weight)
        added = decay * tl.load(sums + at * D + part, mask=part < D, other=0.0) + e
        tl.store(sums_out + at * D + part, added, mask=part < D)
        factor = tl.load(mix + g * D + part, mask=part < D, other=0.0)
        total += factor * added * tl.exp(-norm * tl.log(tl.maximum(weight, 1.0)))
        longest = tl.maximum(longest, weight)
    if PRIOR:
        total *= longest / (longest + prior)
    tl.store(h + row * D + part, total, mask=part < D)


@triton.jit
def _token_key(
    now, before, table, key, tokens, size, fade,
    LAST: tl.constexpr, PAIR: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, WIDE)
    out = key + row * ((LAST + PAIR) * D) + part
    both = tl.full((WIDE,), 1.0, tl.float32)
    share = 1.0
    for i in tl.static_range(LAST):
        if i == 0:
            token = tl.load(now + row).to(tl.int64)
        else:
            token = tl.load(before + row * (LAST - 1) + i - 1).to(tl.int64)
        if i < LAST - 1:
            tl.store(tokens + row * (LAST - 1) + i, token)
        there = (part < D) & (token >= 0)
        at = tl.minimum(token, size - 1)
        direction = tl.load(table + at * D + part, mask=there, other=0.0)
        tl.store(out + i * D, share * direction, mask=part < D)
        share = share * fade
        if i < 2:
            both *= direction
    if PAIR:
        long = tl.sqrt(tl.sum(both * both, axis=0))
        tl.store(out + LAST * D, both / tl.where(long > 0, long, 1.0), mask=part < D)


@triton.jit
def _scaled(h, out, length, D: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, WIDE)
    x = tl.load(h + row * D + part, mask=part < D, other=0.0)
    long = tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(out + row * D + part, length * x / tl.where(long > 0, long, 1.0), mask=part < D)
