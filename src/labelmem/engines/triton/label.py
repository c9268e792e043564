# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 4 for all labels of all streams in one pass: a state is read once and written once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.engines.triton.arithmetic import (
    coarse_part,
    in_half,
    inverse,
    inverses,
    power_of_two,
    product_in_parts,
)
from labelmem.engines.triton.label_gradient import label_gradient, padded_units
from labelmem.engines.triton.runtime import INTERPRETED, tl, triton

__all__ = ["LabelWeights", "label_step"]

_FORM: dict[str, Any] = {"BLOCK": 32, "TILES": 13, "STAGES": 3, "num_warps": 1}
"""How a step is cut into programs of at most ``TILES`` times ``BLOCK`` labels, for states of 16
units, and how many tiles are under way at a time. ``benchmarks/gpu.py --forms`` compares forms."""

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
    all_tiles, most = triton.cdiv(slots, form["BLOCK"]), form.pop("TILES")
    programs = triton.cdiv(all_tiles, most)
    tiles = triton.cdiv(all_tiles, programs)  # all have about as many
    told = (weight_theta, bias_theta, new, theta, slots, programs, tiles)
    _step[(n * programs,)](*given, *told, H=mu.shape[2], P=units, EXACT=INTERPRETED, **form)
    return new, theta


@triton.jit
def _unit(P: tl.constexpr):
    """The units in the order in which a tensor core has them.

    A thread of a tensor core holds columns 2t, 2t + 1, 2t + 8 and 2t + 9 of sixteen. Here these are
    the units 4t to 4t + 3, neighbours in memory: states go from there to the tensor cores and back
    without a detour.
    """
    column = tl.arange(0, P)
    return (column // 16) * 16 + (column % 8) // 2 * 4 + (column % 16) // 8 * 2 + column % 2


@triton.jit
def _to_columns(x, BLOCK: tl.constexpr, P: tl.constexpr):
    """From the order of units to that of columns."""
    x = tl.reshape(x, (BLOCK, P // 16, 4, 2, 2))
    return tl.reshape(tl.permute(x, (0, 1, 3, 2, 4)), (BLOCK, P))


@triton.jit
def _to_units(x, BLOCK: tl.constexpr, P: tl.constexpr):
    """And back."""
    x = tl.reshape(x, (BLOCK, P // 16, 2, 4, 2))
    return tl.reshape(tl.permute(x, (0, 1, 3, 2, 4)), (BLOCK, P))


@triton.jit
def _given_parts(r, s, old, P: tl.constexpr):
    """(labels, 16) both parts of r, s and, for what all labels share, of 1; and all of it again.

    Columns 2t and 2t + 1 are the parts of one number, as well as those eight on.
    """
    column = tl.arange(0, 16)[None, :]
    which = column % 8 // 2
    value = tl.where(which == 0, r[:, None], tl.where(which == 1, s[:, None], 1.0))
    if P == 16:  # changes nothing but this: the same threads have the same places in both
        value = tl.where(column < 16, value, old)
    coarse = coarse_part(value)
    fine = (value - coarse).to(tl.float16)
    return tl.where(column % 2 == 0, coarse, fine)


@triton.jit
def _given_weights(
    shared, bias_mu, weight_scores, scale, gate: tl.constexpr,
    STATE: tl.constexpr, H: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """(16, units) the weights of what is given to a gate: see :func:`_given_parts`.

    What all labels share has three parts, which is all of its bits.
    """
    unit, line = _unit(P), tl.arange(0, 16)[:, None]
    used, unit = unit < H, gate * H + unit
    bias = tl.load(bias_mu + unit, mask=used, other=0.0)
    if STATE:
        by_r, by_s, same = 0.0 * bias, 0.0 * bias, bias
    else:
        by_r = tl.load(weight_scores + unit * 2, mask=used, other=0.0)
        by_s = tl.load(weight_scores + unit * 2 + 1, mask=used, other=0.0)
        same = tl.load(shared + unit, mask=used, other=0.0)
        if gate < 2:
            same += bias
    which = line % 8 // 2
    value = tl.where(which == 0, by_r[None, :], tl.where(which == 1, by_s[None, :], same[None, :]))
    value = in_half(scale * value)
    coarse = coarse_part(value)
    fine = (value - coarse).to(tl.float16)
    rest = (value - coarse - fine).to(tl.float16)
    last = tl.where(line < 8, rest, 0.0).to(tl.float16)
    return tl.where(which < 3, tl.where(line < 8, coarse, fine), last)


@triton.jit
def _weights(weight_mu, scale, gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr):
    """(units, units) the two parts of the weights of one gate."""
    unit = _unit(P)
    there = (unit[:, None] < H) & (unit[None, :] < H)
    place = (gate * H + unit[None, :]) * H + unit[:, None]
    weight = in_half(scale * tl.load(weight_mu + place, mask=there, other=0.0))
    coarse = coarse_part(weight)
    return coarse, weight - coarse


@triton.jit
def _states(mu, r, s, slot, limit, H: tl.constexpr, P: tl.constexpr):
    """States and scores of the labels at these slots, from the limit on those of the last one."""
    unit = tl.arange(0, P)
    slot = tl.minimum(slot, limit - 1)
    place = mu + slot[:, None] * H + unit[None, :]
    if H == P:
        old = tl.load(place)
    else:
        old = tl.load(place, mask=unit[None, :] < H, other=0.0)
    return old, tl.load(r + slot), tl.load(s + slot)


@triton.jit
def _step(
    mu, r, s, shared, weight_mu, bias_mu, weight_scores, weight_theta, bias_theta,
    new, theta, slots, programs, tiles, H: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = (program // programs).to(tl.int64)
    # From here on all is about one stream.
    mu, new, shared = mu + row * slots * H, new + row * slots * H, shared + row * (3 * H)
    r, s, theta = r + row * slots, s + row * slots, theta + row * slots
    unit = tl.arange(0, P)
    # Gates are made of powers of two: sigmoid(x) is 1 / (1 + 2^-cx), tanh(x) needs 2^-2cx.
    c = -1.4426950408889634
    coarse_0, fine_0 = _weights(weight_mu, c, 0, H, P)
    coarse_1, fine_1 = _weights(weight_mu, c, 1, H, P)
    coarse_2, fine_2 = _weights(weight_mu, 2 * c, 2, H, P)
    given_0 = _given_weights(shared, bias_mu, weight_scores, c, 0, False, H, P)
    given_1 = _given_weights(shared, bias_mu, weight_scores, c, 1, False, H, P)
    given_2 = _given_weights(shared, bias_mu, weight_scores, 2 * c, 2, False, H, P)
    given_3 = _given_weights(shared, bias_mu, weight_scores, 2 * c, 2, True, H, P)
    to_theta = c * tl.load(weight_theta + _unit(P), mask=_unit(P) < H, other=0.0)
    start = c * tl.load(bias_theta)
    slot = (program % programs) * (BLOCK * tiles) + tl.arange(0, BLOCK)
    end = tl.minimum(slots, (program % programs + 1) * (BLOCK * tiles))
    # The next states are on their way while these are worked on.
    for _ in tl.range(0, tiles, num_stages=STAGES):
        state, r_y, s_y = _states(mu, r, s, slot, end, H, P)
        old = _to_columns(state, BLOCK, P)
        given = _given_parts(r_y, s_y, old, P)
        coarse = coarse_part(old)
        fine = old - coarse
        nothing = tl.zeros((BLOCK, P), tl.float32)
        x = product_in_parts(coarse, fine, coarse_0, fine_0, tl.dot(given, given_0, acc=nothing))
        reset = inverses(1 + power_of_two(tl.minimum(x, 60.0), EXACT), EXACT, BLOCK, P)
        x = product_in_parts(coarse, fine, coarse_1, fine_1, tl.dot(given, given_1, acc=nothing))
        a = power_of_two(tl.minimum(x, 30.0), EXACT)
        x = tl.dot(given, given_3, acc=nothing)
        recalled = product_in_parts(coarse, fine, coarse_2, fine_2, x)
        x = tl.dot(given, given_2, acc=nothing)
        b = power_of_two(tl.minimum(x + reset * recalled, 30.0), EXACT)
        # fresh = (1 - b) / (1 + b) and update = 1 / (1 + a): one division makes both.
        sum_b = 1 + b
        moved = ((1 - b) * a + old * sum_b) * inverses(a * sum_b + sum_b, EXACT, BLOCK, P)
        there = slot < end
        place = slot[:, None] * H + unit[None, :]
        used = there[:, None] & (unit[None, :] < H)
        tl.store(new + place, _to_units(moved, BLOCK, P), mask=used)
        z = tl.sum(moved * to_theta[None, :], axis=1) + start
        gate = inverse(1 + power_of_two(z, EXACT), EXACT)
        tl.store(theta + slot, gate, mask=there)
        slot += BLOCK
