# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""The gradient of Eq. 4 for all labels of all streams.

It makes the gates anew from the state the step starts from: between the two passes nothing is kept
but what was there before the step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.engines.triton.runtime import tl, triton

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
def _step_again(
    old, r, s, shared, weight_mu, bias_mu, weight_scores, row, H: tl.constexpr, P: tl.constexpr
):
    """Eq. 4 of some labels: reset, update, what is reset, and the new state."""
    x = _from_input(shared, weight_scores, row, r, s, 0, H, P)
    reset = _sigmoid(x + _from_mu(old, weight_mu, bias_mu, 0, H, P))
    x = _from_input(shared, weight_scores, row, r, s, 1, H, P)
    update = _sigmoid(x + _from_mu(old, weight_mu, bias_mu, 1, H, P))
    state = _from_mu(old, weight_mu, bias_mu, 2, H, P)
    x = _from_input(shared, weight_scores, row, r, s, 2, H, P)
    return reset, update, state, 2 * _sigmoid(2 * (x + reset * state)) - 1


@triton.jit
def _to_states(d, weight_mu, gate: tl.constexpr, H: tl.constexpr, P: tl.constexpr):
    """What the slope by a gate's inputs is by the states."""
    return tl.dot(d, tl.trans(gate_weight(weight_mu, gate, H, P)), input_precision="tf32x3")


@triton.jit
def _put_scores(
    out, there, d_reset, d_update, d_fresh, weights, H: tl.constexpr, P: tl.constexpr
):  # fmt: skip
    """What the slopes by all gates' inputs are by r or s of each label; ``weights`` are its."""
    unit = tl.arange(0, P)
    by_reset = tl.load(weights + unit * 2, mask=unit < H, other=0.0)
    by_update = tl.load(weights + (H + unit) * 2, mask=unit < H, other=0.0)
    by_fresh = tl.load(weights + (2 * H + unit) * 2, mask=unit < H, other=0.0)
    total = d_reset * by_reset[None, :] + d_update * by_update[None, :]
    tl.store(out, tl.sum(total + d_fresh * by_fresh[None, :], axis=1), mask=there)


@triton.jit
def _add_inputs(same, by_r, by_s, d, r, s):
    """Add the slopes by what is put into one gate, and by the weights of r and s."""
    same += tl.sum(d, axis=0)
    by_r += tl.sum(d * r[:, None], axis=0)
    by_s += tl.sum(d * s[:, None], axis=0)
    return same, by_r, by_s


@triton.jit
def _put_inputs(line, same, by_r, by_s, P: tl.constexpr):
    """Each a line, three lines apart: in between are those of the other gates."""
    tl.store(line, same)
    tl.store(line + 3 * P, by_r)
    tl.store(line + 6 * P, by_s)


@triton.jit
def _gradient(
    mu, r, s, shared, weight_mu, bias_mu, weight_scores, weight_theta, bias_theta,
    by_new, by_theta, of_mu, of_r, of_s, matrices, vectors,
    slots, splits, H: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    row = program // splits
    unit, none = tl.arange(0, P), tl.zeros((P,), tl.float32)
    to_theta = tl.load(weight_theta + unit, mask=unit < H, other=0.0)
    of_reset = tl.zeros((P, P), tl.float32)  # the gates' weights, units down, inputs across
    of_update, of_fresh = of_reset, of_reset
    same_0, by_r_0, by_s_0 = none, none, none
    same_1, by_r_1, by_s_1 = none, none, none
    same_2, by_r_2, by_s_2 = none, none, none
    of_bias, of_to_theta, of_start = none, none, none
    for first in range((program % splits) * BLOCK, slots, splits * BLOCK):
        slot = first + tl.arange(0, BLOCK)
        there, at = slot < slots, row * slots + slot
        place = at[:, None] * H + unit[None, :]
        used = there[:, None] & (unit[None, :] < H)
        old = tl.load(mu + place, mask=used, other=0.0)
        r_y, s_y = tl.load(r + at, mask=there, other=0.0), tl.load(s + at, mask=there, other=0.0)
        reset, update, state, fresh = _step_again(
            old, r_y, s_y, shared, weight_mu, bias_mu, weight_scores, row, H, P
        )
        moved = fresh + update * (old - fresh)
        theta = _sigmoid(tl.sum(moved * to_theta[None, :], axis=1) + tl.load(bias_theta))
        # And back. Places beyond the labels have no slope, whatever the bias made of them.
        slope = tl.load(by_theta + at, mask=there, other=0.0) * theta * (1 - theta)
        own = tl.load(by_new + place, mask=used, other=0.0) + slope[:, None] * to_theta[None, :]
        d_fresh = own * (1 - update) * (1 - fresh * fresh)
        d_state = d_fresh * reset
        d_reset = d_fresh * state * reset * (1 - reset)
        d_update = own * (old - fresh) * update * (1 - update)
        back = own * update + _to_states(d_reset, weight_mu, 0, H, P)
        back += _to_states(d_update, weight_mu, 1, H, P) + _to_states(d_state, weight_mu, 2, H, P)
        tl.store(of_mu + place, back, mask=used)
        of_reset += tl.dot(tl.trans(d_reset), old, input_precision="tf32x3")
        of_update += tl.dot(tl.trans(d_update), old, input_precision="tf32x3")
        of_fresh += tl.dot(tl.trans(d_state), old, input_precision="tf32x3")
        same_0, by_r_0, by_s_0 = _add_inputs(same_0, by_r_0, by_s_0, d_reset, r_y, s_y)
        same_1, by_r_1, by_s_1 = _add_inputs(same_1, by_r_1, by_s_1, d_update, r_y, s_y)
        same_2, by_r_2, by_s_2 = _add_inputs(same_2, by_r_2, by_s_2, d_fresh, r_y, s_y)
        of_bias += tl.sum(d_state, axis=0)
        of_to_theta += tl.sum(slope[:, None] * moved, axis=0)
        of_start += tl.where(unit == 0, tl.sum(slope, axis=0), 0.0)
        _put_scores(of_r + at, there, d_reset, d_update, d_fresh, weight_scores, H, P)
        _put_scores(of_s + at, there, d_reset, d_update, d_fresh, weight_scores + 1, H, P)
    square = matrices + program * (3 * P * P) + unit[:, None] * P + unit[None, :]
    tl.store(square, of_reset)
    tl.store(square + P * P, of_update)
    tl.store(square + 2 * P * P, of_fresh)
    line = vectors + program * (12 * P) + unit
    _put_inputs(line, same_0, by_r_0, by_s_0, P)
    _put_inputs(line + P, same_1, by_r_1, by_s_1, P)
    _put_inputs(line + 2 * P, same_2, by_r_2, by_s_2, P)
    tl.store(line + 9 * P, of_bias)
    tl.store(line + 10 * P, of_to_theta)
    tl.store(line + 11 * P, of_start)
