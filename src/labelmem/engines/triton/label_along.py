# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 4 along a stretch of steps: a label's state stays where it is from the first to the last."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.engines.triton.arithmetic import (
    coarse_part,
    inverse,
    power_of_two,
    product_in_parts,
)
from labelmem.engines.triton.label_gradient import gate_weight, padded_units
from labelmem.engines.triton.runtime import INTERPRETED, tl, triton

__all__ = ["label_steps"]

_TILE = 1024  # numbers of a state that one program holds


def label_steps(
    mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, *weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Theta (n, T, A) of every step, and the states (n, A, hidden) after the last.

    Parameters are those of :func:`labelmem.unrolling.theta.thetas`, and the weights of
    :meth:`labelmem.label_combiner.LabelCombiner.cell_weights`.
    """
    n, steps, slots = r.shape
    units = padded_units(mu.shape[2])
    block = max(16, _TILE // units)
    theta, end = torch.empty_like(r), torch.empty_like(mu)
    programs = triton.cdiv(slots, block)
    sizes = {"H": mu.shape[2], "P": units, "BLOCK": block, "EXACT": INTERPRETED}
    _along[(n * programs,)](mu, r, s, shared, *weights, theta, end, steps, slots, programs, **sizes)
    return theta, end


@triton.jit
def _weights(
    weight_mu, bias_mu, weight_scores, scale,
    gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Of one gate: the bias of the states, and three kinds of weights."""
    unit = tl.arange(0, P)
    used = unit < H
    bias = tl.load(bias_mu + gate * H + unit, mask=used, other=0.0)
    by_r = tl.load(weight_scores + (gate * H + unit) * 2, mask=used, other=0.0)
    by_s = tl.load(weight_scores + (gate * H + unit) * 2 + 1, mask=used, other=0.0)
    weight = scale * gate_weight(weight_mu, gate, H, P)
    coarse = coarse_part(weight)
    return scale * bias, scale * by_r, scale * by_s, coarse, weight - coarse


@triton.jit
def _given(r, s, shared, at, slot, there, slots, H: tl.constexpr, P: tl.constexpr):
    """Scores of the labels, and what the step puts into the three gates."""
    unit = tl.arange(0, P)
    place = shared + at * (3 * H) + unit
    same_0 = tl.load(place, mask=unit < H, other=0.0)
    same_1 = tl.load(place + H, mask=unit < H, other=0.0)
    same_2 = tl.load(place + 2 * H, mask=unit < H, other=0.0)
    r_y = tl.load(r + at * slots + slot, mask=there, other=0.0)
    return r_y, tl.load(s + at * slots + slot, mask=there, other=0.0), same_0, same_1, same_2


@triton.jit
def _along(
    mu, r, s, shared, weight_mu, bias_mu, weight_scores, weight_theta, bias_theta,
    theta, end, steps, slots, programs,
    H: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    row = (program // programs).to(tl.int64)
    unit = tl.arange(0, P)
    # Gates are made of powers of two: sigmoid(x) is 1 / (1 + 2^-cx), tanh(x) needs 2^-2cx.
    c = -1.4426950408889634
    bias_0, r_0, s_0, coarse_0, fine_0 = _weights(weight_mu, bias_mu, weight_scores, c, 0, H, P)
    bias_1, r_1, s_1, coarse_1, fine_1 = _weights(weight_mu, bias_mu, weight_scores, c, 1, H, P)
    bias_2, r_2, s_2, coarse_2, fine_2 = _weights(weight_mu, bias_mu, weight_scores, 2 * c, 2, H, P)
    to_theta = c * tl.load(weight_theta + unit, mask=unit < H, other=0.0)
    start = c * tl.load(bias_theta)
    slot = (program % programs) * BLOCK + tl.arange(0, BLOCK)
    there = slot < slots
    used = there[:, None] & (unit[None, :] < H)
    place = (row * slots + slot)[:, None] * H + unit[None, :]
    old = tl.load(mu + place, mask=used, other=0.0)
    at = row * steps
    # What the next step is given is on its way while this one is worked on.
    r_ahead, s_ahead, ahead_0, ahead_1, ahead_2 = _given(r, s, shared, at, slot, there, slots, H, P)
    for t in range(steps):
        r_y, s_y = r_ahead[:, None], s_ahead[:, None]
        same_0, same_1, same_2 = c * ahead_0 + bias_0, c * ahead_1 + bias_1, 2 * c * ahead_2
        r_ahead, s_ahead, ahead_0, ahead_1, ahead_2 = _given(
            r, s, shared, at + tl.where(t + 1 < steps, 1, 0), slot, there, slots, H, P
        )
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
        old = ((1 - b) * a + old * (1 + b)) * inverse((1 + a) * (1 + b), EXACT)
        z = tl.sum(old * to_theta[None, :], axis=1) + start
        gate = inverse(1 + power_of_two(z, EXACT), EXACT)
        tl.store(theta + at * slots + slot, gate, mask=there)
        at += 1
    tl.store(end + place, old, mask=used)
