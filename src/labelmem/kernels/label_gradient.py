# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""The gradient of Eq. 4 for all labels of all streams.

It makes the gates anew from the state the step starts from: between the two passes nothing is kept
but what was there before the step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["gate_weight", "label_gradient", "padded_units"]

_TILE = 1024  # numbers of a state that one program of the gradient holds at a time
_SPLITS = 8  # programs for one stream's gradient; each adds up its own part of the weights'


def padded_units(hidden: int) -> int:
    """Units with padding: what a tensor core takes."""
    return max(16, int(triton.next_power_of_2(hidden)))


def label_gradient(
    mu: Tensor,
    r: Tensor,
    s: Tensor,
    shared: Tensor,
    weight_mu: Tensor,
    bias_mu: Tensor,
    weight_scores: Tensor,
    weight_theta: Tensor,
    bias_theta: Tensor,
    by_new: Tensor,
    by_theta: Tensor,
) -> tuple[Tensor, ...]:
    """The gradients of all that was given to the step, by those of its states and thetas."""
    n, slots, h = mu.shape
    p = padded_units(h)
    block = max(16, _TILE // p)
    splits = min(_SPLITS, triton.cdiv(slots, block))
    of_mu, of_r, of_s = torch.empty_like(by_new), torch.empty_like(by_theta), torch.empty_like(r)
    matrices = mu.new_empty(n * splits, 3, p, p)
    vectors = mu.new_empty(n * splits, 12, p)
    given = [x.contiguous() for x in (mu, r, s, shared, weight_mu, bias_mu, weight_scores)]
    own = (of_mu, of_r, of_s, matrices, vectors)
    _gradient[(n * splits,)](
        *given,
        weight_theta,
        bias_theta,
        by_new,
        by_theta,
        *own,
        slots,
        splits,
        H=h,
        P=p,
        BLOCK=block,
    )
    of_weight = matrices.sum(dim=0)[:, :h, :h].reshape(3 * h, h)
    rows = vectors.view(n, splits, 12, p)[..., :h].sum(dim=1)
    of_shared = rows[:, :3].reshape(n, 3 * h)
    total = rows.sum(dim=0)
    of_scores = torch.stack([total[3:6].reshape(-1), total[6:9].reshape(-1)], dim=1)
    of_bias = torch.cat([total[0], total[1], total[9]])
    of_start = vectors[:, 11, 0].sum().view_as(bias_theta)
    return of_mu, of_r, of_s, of_shared, of_weight, of_bias, of_scores, total[10], of_start


@triton.jit
def gate_weight(weight_mu, gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr):
    """(P, P) the weights of one gate, inputs down, units across."""
    unit = tl.arange(0, P)
    there = (unit[:, None] < H) & (unit[None, :] < H)
    return tl.load(
        weight_mu + (gate * H + unit[None, :]) * H + unit[:, None], mask=there, other=0.0
    )


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _from_mu(old, weight_mu, bias_mu, gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr):
    """What the states put into one gate."""
    unit = tl.arange(0, P)
    weight = gate_weight(weight_mu, gate, H, P)
    bias = tl.load(bias_mu + gate * H + unit, mask=unit < H, other=0.0)
    return tl.dot(old, weight, input_precision="tf32x3") + bias[None, :]


@triton.jit
def _from_input(
    shared, weight_scores, row, r, s, gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr
):
    """What the step and the label's scores put into one gate."""
    unit = tl.arange(0, P)
    used = unit < H
    same = tl.load(shared + row * (3 * H) + gate * H + unit, mask=used, other=0.0)
    by_r = tl.load(weight_scores + (gate * H + unit) * 2, mask=used, other=0.0)
    by_s = tl.load(weight_scores + (gate * H + unit) * 2 + 1, mask=used, other=0.0)
    return same[None, :] + r[:, None] * by_r[None, :] + s[:, None] * by_s[None, :]


@triton.jit
def _gradient(
    mu, r, s, shared, weight_mu, bias_mu, weight_scores, weight_theta, bias_theta,
    by_new, by_theta, of_mu, of_r, of_s, matrices, vectors,
    slots, splits, H: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    row = program // splits
    unit = tl.arange(0, P)
    to_theta = tl.load(weight_theta + unit, mask=unit < H, other=0.0)
    of_reset = tl.zeros((P, P), tl.float32)  # the gates' weights, units down, inputs across
    of_update = tl.zeros((P, P), tl.float32)
    of_fresh = tl.zeros((P, P), tl.float32)
    shared_0 = tl.zeros((P,), tl.float32)
    shared_1 = tl.zeros((P,), tl.float32)
    shared_2 = tl.zeros((P,), tl.float32)
    by_r_0 = tl.zeros((P,), tl.float32)
    by_r_1 = tl.zeros((P,), tl.float32)
    by_r_2 = tl.zeros((P,), tl.float32)
    by_s_0 = tl.zeros((P,), tl.float32)
    by_s_1 = tl.zeros((P,), tl.float32)
    by_s_2 = tl.zeros((P,), tl.float32)
    of_bias = tl.zeros((P,), tl.float32)
    of_to_theta = tl.zeros((P,), tl.float32)
    of_start = tl.zeros((P,), tl.float32)
    for first in range((program % splits) * BLOCK, slots, splits * BLOCK):
        slot = first + tl.arange(0, BLOCK)
        there = slot < slots
        place = (row * slots + slot)[:, None] * H + unit[None, :]
        used = there[:, None] & (unit[None, :] < H)
        old = tl.load(mu + place, mask=used, other=0.0)
        r_y = tl.load(r + row * slots + slot, mask=there, other=0.0)
        s_y = tl.load(s + row * slots + slot, mask=there, other=0.0)
        # The step again.
        x = _from_input(shared, weight_scores, row, r_y, s_y, 0, H, P)
        reset = _sigmoid(x + _from_mu(old, weight_mu, bias_mu, 0, H, P))
        x = _from_input(shared, weight_scores, row, r_y, s_y, 1, H, P)
        update = _sigmoid(x + _from_mu(old, weight_mu, bias_mu, 1, H, P))
        state = _from_mu(old, weight_mu, bias_mu, 2, H, P)
        x = _from_input(shared, weight_scores, row, r_y, s_y, 2, H, P)
        fresh = 2 * _sigmoid(2 * (x + reset * state)) - 1
        moved = fresh + update * (old - fresh)
        z = tl.sum(moved * to_theta[None, :], axis=1) + tl.load(bias_theta)
        theta = _sigmoid(z)
        # And back. Places beyond the labels have no slope, whatever the bias made of them.
        slope = tl.load(by_theta + row * slots + slot, mask=there, other=0.0) * theta * (1 - theta)
        own = tl.load(by_new + place, mask=used, other=0.0) + slope[:, None] * to_theta[None, :]
        d_fresh = own * (1 - update) * (1 - fresh * fresh)
        d_state = d_fresh * reset
        d_reset = d_fresh * state * reset * (1 - reset)
        d_update = own * (old - fresh) * update * (1 - update)
        back = own * update
        back += tl.dot(d_reset, tl.trans(gate_weight(weight_mu, 0, H, P)), input_precision="tf32x3")
        back += tl.dot(
            d_update, tl.trans(gate_weight(weight_mu, 1, H, P)), input_precision="tf32x3"
        )
        back += tl.dot(d_state, tl.trans(gate_weight(weight_mu, 2, H, P)), input_precision="tf32x3")
        tl.store(of_mu + place, back, mask=used)
        of_reset += tl.dot(tl.trans(d_reset), old, input_precision="tf32x3")
        of_update += tl.dot(tl.trans(d_update), old, input_precision="tf32x3")
        of_fresh += tl.dot(tl.trans(d_state), old, input_precision="tf32x3")
        shared_0 += tl.sum(d_reset, axis=0)
        shared_1 += tl.sum(d_update, axis=0)
        shared_2 += tl.sum(d_fresh, axis=0)
        by_r_0 += tl.sum(d_reset * r_y[:, None], axis=0)
        by_r_1 += tl.sum(d_update * r_y[:, None], axis=0)
        by_r_2 += tl.sum(d_fresh * r_y[:, None], axis=0)
        by_s_0 += tl.sum(d_reset * s_y[:, None], axis=0)
        by_s_1 += tl.sum(d_update * s_y[:, None], axis=0)
        by_s_2 += tl.sum(d_fresh * s_y[:, None], axis=0)
        of_bias += tl.sum(d_state, axis=0)
        of_to_theta += tl.sum(slope[:, None] * moved, axis=0)
        of_start += tl.where(unit == 0, tl.sum(slope, axis=0), 0.0)
        score = weight_scores + unit * 2
        r_0 = tl.load(score, mask=unit < H, other=0.0)
        r_1 = tl.load(score + 2 * H, mask=unit < H, other=0.0)
        r_2 = tl.load(score + 4 * H, mask=unit < H, other=0.0)
        total = d_reset * r_0[None, :] + d_update * r_1[None, :] + d_fresh * r_2[None, :]
        tl.store(of_r + row * slots + slot, tl.sum(total, axis=1), mask=there)
        s_0 = tl.load(score + 1, mask=unit < H, other=0.0)
        s_1 = tl.load(score + 2 * H + 1, mask=unit < H, other=0.0)
        s_2 = tl.load(score + 4 * H + 1, mask=unit < H, other=0.0)
        total = d_reset * s_0[None, :] + d_update * s_1[None, :] + d_fresh * s_2[None, :]
        tl.store(of_s + row * slots + slot, tl.sum(total, axis=1), mask=there)
    square = matrices + program * (3 * P * P) + unit[:, None] * P + unit[None, :]
    tl.store(square, of_reset)
    tl.store(square + P * P, of_update)
    tl.store(square + 2 * P * P, of_fresh)
    line = vectors + program * (12 * P) + unit
    tl.store(line, shared_0)
    tl.store(line + P, shared_1)
    tl.store(line + 2 * P, shared_2)
    tl.store(line + 3 * P, by_r_0)
    tl.store(line + 4 * P, by_r_1)
    tl.store(line + 5 * P, by_r_2)
    tl.store(line + 6 * P, by_s_0)
    tl.store(line + 7 * P, by_s_1)
    tl.store(line + 8 * P, by_s_2)
    tl.store(line + 9 * P, of_bias)
    tl.store(line + 10 * P, of_to_theta)
    tl.store(line + 11 * P, of_start)
