# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What comes before the memory, for many streams: vectors of tokens, and of histories of them.

Each is many small tensor operations over little, so a kernel of its own saves most of its time.
A token that there is none of makes NaN: a kernel cannot refuse it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.engines.triton.runtime import tl, triton

__all__ = ["history_step", "token_vectors"]


def token_vectors(tokens: Tensor, table: Tensor, start: Tensor, scale: float) -> Tensor:
    """Vectors (…, d) of tokens (…): rows of the table times ``scale``, or the start (d,)."""
    labels, dim = table.shape
    out = table.new_empty(*tokens.shape, dim)
    told = (tokens.contiguous(), table, start, out, labels, scale)
    if tokens.numel():
        _vectors[(tokens.numel(),)](*told, D=dim, WIDE=triton.next_power_of_2(dim), num_warps=1)
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
