# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 4 for all labels of all streams in one pass: a state is read once and written once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.kernels.label_gradient import gate_weight, label_gradient, padded_units
from labelmem.kernels.triton import INTERPRETED, tl, triton

__all__ = [
    "LabelWeights",
    "coarse_part",
    "inverse",
    "label_step",
    "power_of_two",
    "product_in_parts",
]

_FORM: dict[str, Any] = {"BLOCK": 64, "TILES": 8, "AHEAD": True, "num_warps": 4}
"""How a step is cut into programs of ``TILES`` times ``BLOCK`` labels, for states of 16 units, and
whether states are fetched one tile ahead. ``benchmarks/gpu.py --forms`` compares such forms."""

LabelWeights = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""weight_mu (3 hidden, hidden), bias_mu (3 hidden,), weight_scores (3 hidden, 2), weight_theta
(hidden,), bias_theta ()."""


def label_step(
    mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, weights: LabelWeights, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The next states (n, A, hidden) and theta (n, A), with gradients where they are asked for.

    Parameters
    ----------
    mu, r, s
        (n, A, hidden), (n, A), (n, A).
    shared
        (n, 3 hidden) what a step puts in for all labels.
    out
        Where to put the states; then there is no gradient.
    """
    if out is not None:
        return _forward(mu, r, s, shared, *weights, out=out)
    new, theta = _LabelStep.apply(mu, r, s, shared, *weights)
    return new, theta


class _LabelStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(*given)
        return _forward(*given)

    @staticmethod
    def backward(ctx: Any, by_new: Tensor, by_theta: Tensor) -> Any:
        given = [*ctx.saved_tensors, by_new.contiguous(), by_theta.contiguous()]
        return label_gradient(*given)


def _forward(
    mu: Tensor,
    r: Tensor,
    s: Tensor,
    shared: Tensor,
    weight_mu: Tensor,
    bias_mu: Tensor,
    weight_scores: Tensor,
    weight_theta: Tensor,
    bias_theta: Tensor,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    n, slots, _ = mu.shape
    units = padded_units(mu.shape[2])
    new = torch.empty_like(mu, memory_format=torch.contiguous_format) if out is None else out
    theta = torch.empty_like(r, memory_format=torch.contiguous_format)
    given = [x.contiguous() for x in (mu, r, s, shared, weight_mu, bias_mu, weight_scores)]
    form = _FORM | {"BLOCK": max(16, _FORM["BLOCK"] * 16 // units)}
    programs = triton.cdiv(slots, form["BLOCK"] * form["TILES"])
    told = (weight_theta, bias_theta, new, theta, slots, programs)
    _step[(n * programs,)](*given, *told, H=mu.shape[2], P=units, EXACT=INTERPRETED, **form)
    return new, theta


@triton.jit
def power_of_two(x, EXACT: tl.constexpr):
    """Two to the x; a device that need not care for the tiniest numbers has one instruction."""
    if EXACT:
        return tl.exp2(x)
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def inverse(x, EXACT: tl.constexpr):
    """One over x, likewise."""
    if EXACT:
        return 1 / x
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def coarse_part(x):
    """The first eleven bits of numbers, all that a tensor core looks at."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def product_in_parts(coarse, fine, weight_coarse, weight_fine, acc):
    """States times weights, both in two parts; what two fine parts make together is lost."""
    acc = tl.dot(coarse, weight_fine, acc=acc, input_precision="tf32")
    acc = tl.dot(fine, weight_coarse, acc=acc, input_precision="tf32")
    return tl.dot(coarse, weight_coarse, acc=acc, input_precision="tf32")


@triton.jit
def _to_gate(
    shared, weight_mu, bias_mu, weight_scores, row, scale,
    gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Of one gate: what the stream puts in, the bias of the states, and three kinds of weights."""
    unit = tl.arange(0, P)
    used = unit < H
    same = tl.load(shared + row * (3 * H) + gate * H + unit, mask=used, other=0.0)
    bias = tl.load(bias_mu + gate * H + unit, mask=used, other=0.0)
    by_r = tl.load(weight_scores + (gate * H + unit) * 2, mask=used, other=0.0)
    by_s = tl.load(weight_scores + (gate * H + unit) * 2 + 1, mask=used, other=0.0)
    weight = gate_weight(weight_mu, gate, H, P)
    weight = scale * weight
    coarse = coarse_part(weight)
    return scale * same, scale * bias, scale * by_r, scale * by_s, coarse, weight - coarse


@triton.jit
def _states(mu, r, s, row, slot, limit, slots, H: tl.constexpr, P: tl.constexpr):
    """States and scores of the labels at these slots, zero from the limit on."""
    unit = tl.arange(0, P)
    there = slot < limit
    at = row * slots + slot
    used = there[:, None] & (unit[None, :] < H)
    old = tl.load(mu + at[:, None] * H + unit[None, :], mask=used, other=0.0)
    r_y = tl.load(r + at, mask=there, other=0.0)
    return old, r_y, tl.load(s + at, mask=there, other=0.0)


@triton.jit
def _step(
    mu, r, s, shared, weight_mu, bias_mu, weight_scores, weight_theta, bias_theta,
    new, theta, slots, programs, H: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
    TILES: tl.constexpr, AHEAD: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = (program // programs).to(tl.int64)
    unit = tl.arange(0, P)
    # Gates are made of powers of two: sigmoid(x) is 1 / (1 + 2^-cx), tanh(x) needs 2^-2cx.
    c = -1.4426950408889634
    same_0, bias_0, r_0, s_0, coarse_0, fine_0 = _to_gate(
        shared, weight_mu, bias_mu, weight_scores, row, c, 0, H, P
    )
    same_1, bias_1, r_1, s_1, coarse_1, fine_1 = _to_gate(
        shared, weight_mu, bias_mu, weight_scores, row, c, 1, H, P
    )
    same_2, bias_2, r_2, s_2, coarse_2, fine_2 = _to_gate(
        shared, weight_mu, bias_mu, weight_scores, row, 2 * c, 2, H, P
    )
    same_0, same_1 = same_0 + bias_0, same_1 + bias_1
    to_theta = c * tl.load(weight_theta + unit, mask=unit < H, other=0.0)
    start = c * tl.load(bias_theta)
    slot = (program % programs) * (BLOCK * TILES) + tl.arange(0, BLOCK)
    # The next states are on their way while these are worked on.
    ahead, r_ahead, s_ahead = _states(mu, r, s, row, slot, slots, slots, H, P)
    for tile in range(TILES):
        old, r_y, s_y = ahead, r_ahead[:, None], s_ahead[:, None]
        if AHEAD:
            limit = tl.where(tile + 1 < TILES, slots, 0)
            ahead, r_ahead, s_ahead = _states(mu, r, s, row, slot + BLOCK, limit, slots, H, P)
        coarse = coarse_part(old)
        fine = old - coarse
        x = same_0[None, :] + r_y * r_0[None, :] + s_y * s_0[None, :]
        x = product_in_parts(coarse, fine, coarse_0, fine_0, x)
        reset = inverse(1 + power_of_two(x, EXACT), EXACT)
        x = same_1[None, :] + r_y * r_1[None, :] + s_y * s_1[None, :]
        x = product_in_parts(coarse, fine, coarse_1, fine_1, x)
        a = power_of_two(tl.minimum(x, 60.0), EXACT)
        x = same_2[None, :] + r_y * r_2[None, :] + s_y * s_2[None, :]
        state = tl.zeros((BLOCK, P), tl.float32) + bias_2[None, :]
        state = product_in_parts(coarse, fine, coarse_2, fine_2, state)
        b = power_of_two(tl.minimum(x + reset * state, 60.0), EXACT)
        # fresh = (1 - b) / (1 + b) and update = 1 / (1 + a): one division makes both.
        moved = ((1 - b) * a + old * (1 + b)) * inverse((1 + a) * (1 + b), EXACT)
        there = slot < slots
        place = (row * slots + slot)[:, None] * H + unit[None, :]
        tl.store(new + place, moved, mask=there[:, None] & (unit[None, :] < H))
        z = tl.sum(moved * to_theta[None, :], axis=1) + start
        gate = inverse(1 + power_of_two(z, EXACT), EXACT)
        tl.store(theta + row * slots + slot, gate, mask=there)
        slot += BLOCK
        if not AHEAD:
            limit = tl.where(tile + 1 < TILES, slots, 0)
            ahead, r_ahead, s_ahead = _states(mu, r, s, row, slot, limit, slots, H, P)
