# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What comes before the memory, for many streams: vectors of tokens, recurrent cells and keys.

Each is many small tensor operations over little, so a kernel of its own saves most of its time.
A token that there is none of makes NaN: a kernel cannot refuse it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["gru_gates", "history_step", "scaled_rows", "token_key", "token_vectors"]


def token_vectors(tokens: Tensor, table: Tensor, start: Tensor, scale: float) -> Tensor:
    """Vectors (…, d) of tokens (…): rows of the table times ``scale``, or the start (d,)."""
    labels, dim = table.shape
    out = table.new_empty(*tokens.shape, dim)
    told = (tokens.contiguous(), table, start, out, labels, scale)
    if tokens.numel():
        _vectors[(tokens.numel(),)](*told, D=dim, WIDE=triton.next_power_of_2(dim), num_warps=1)
    return out


def gru_gates(from_input: Tensor, from_state: Tensor, h: Tensor) -> Tensor:
    """The next state (n, d) of a GRU cell from two projections (n, 3 d) and the state (n, d)."""
    out = torch.empty_like(h, memory_format=torch.contiguous_format)
    size, dim = h.numel(), h.shape[1]
    if size:
        given = (from_input.contiguous(), from_state.contiguous(), h.contiguous())
        _gates[(triton.cdiv(size, 256),)](*given, out, size, D=dim, BLOCK=256, num_warps=2)
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
