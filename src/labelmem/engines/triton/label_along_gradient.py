# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""The gradient of Eq. 4 along a stretch of steps.

Only the states before the stretch were kept. A program takes some labels through all steps again,
puts their states aside in its own room, and then walks back. It does this for many labels, one
block after another, so that the room does not grow with their number.

What enters the gates is one product: of the states, r, s and 1, which take turns in a row, with
one matrix of weights. Its columns are those of reset, state, update and inside, which take turns as
well: ``state`` is what the reset gate lets through, ``inside`` what enters the new state beside it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem.engines.triton.label_gradient import padded_units
from labelmem.engines.triton.runtime import tl, triton

__all__ = ["label_steps_gradient"]

_TILE = 1024  # numbers of a state that one program holds at a time
_PROGRAMS = 1056  # as many as a large device runs at a time, or a small multiple
_FORM = {"num_warps": 4, "num_stages": 3}


def label_steps_gradient(
    mu: Tensor,
    r: Tensor,
    s: Tensor,
    shared: Tensor,
    weight_mu: Tensor,
    bias_mu: Tensor,
    weight_scores: Tensor,
    weight_theta: Tensor,
    bias_theta: Tensor,
    by_theta: Tensor,
) -> tuple[Tensor, ...]:
    """The gradients of ``shared`` and of the five weights, by that of theta (n, T, A)."""
    (n, steps, slots), h = r.shape, mu.shape[2]
    p = padded_units(h)
    block = max(16, _TILE // p)
    splits = min(triton.cdiv(slots, block), triton.cdiv(_PROGRAMS, n))
    room = mu.new_empty(n * splits, steps, block, p)
    sums = mu.new_zeros(n, splits, steps, p, 4)
    matrices = mu.new_empty(n * splits, p, 4, p, 2)
    vectors = mu.new_empty(n * splits, 2, p)
    weights = _joined(weight_mu, bias_mu, weight_scores, p)
    _walk_back[(n * splits,)](
        mu, r, s, _of_steps(shared, p), weights, weight_theta, bias_theta, by_theta,
        room, sums, matrices, vectors, steps, slots, splits, H=h, P=p, BLOCK=block, **_FORM,
    )  # fmt: skip
    reset, _, update, inside = sums.sum(dim=1)[..., :h, :].unbind(dim=-1)
    of_shared = torch.cat([reset, update, inside], dim=-1)
    reset, state, update, inside = matrices.sum(dim=0)[:h].unbind(dim=1)
    through = torch.cat([reset, update, state])
    of_theta, of_start = vectors.sum(dim=0)
    return (
        of_shared,
        through[:, :h, 0],
        through[:, 2, 1],
        torch.cat([reset, update, inside])[:, :2, 1],
        of_theta[:h],
        of_start[0].view_as(bias_theta),
    )


def _of_steps(shared: Tensor, p: int) -> Tensor:
    """(n, T, p, 4) what each step puts into every column, for all labels."""
    by_gate = shared.unflatten(-1, (3, -1))
    reset, update, inside = pad(by_gate, (0, p - by_gate.shape[-1])).unbind(dim=-2)
    return torch.stack([reset, torch.zeros_like(reset), update, inside], dim=-1)


def _joined(weight_mu: Tensor, bias_mu: Tensor, weight_scores: Tensor, p: int) -> Tensor:
    """(p, 2, p, 4) the weights of the states and, in turn with them, those of r, s and 1."""
    h = weight_mu.shape[1]
    reset, update, state = weight_mu.view(3, h, h).mT.unbind()
    by_reset, by_update, by_inside = weight_scores.view(3, h, 2).mT.unbind()
    reset_bias, update_bias, state_bias = bias_mu.view(3, 1, h).unbind()
    none, neither = torch.zeros_like(reset), torch.zeros_like(by_reset)
    nothing = torch.zeros_like(reset_bias)
    of_states = torch.stack([reset, state, update, none], dim=-1)
    of_scores = torch.stack([by_reset, neither, by_update, by_inside], dim=-1)
    of_one = torch.stack([reset_bias, state_bias, update_bias, nothing], dim=-1)
    others = torch.cat([of_scores, of_one])
    wide = (0, 0, 0, p - h)
    return torch.stack([pad(of_states, (*wide, 0, p - h)), pad(others, (*wide, 0, p - 3))], dim=1)


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _seen(old, r, s, place, there, BLOCK: tl.constexpr, P: tl.constexpr):
    """(BLOCK, 2 P) states in turn with r, s and 1."""
    column = tl.arange(0, P)[None, :]
    r_y = tl.load(r + place, mask=there, other=0.0)[:, None]
    s_y = tl.load(s + place, mask=there, other=0.0)[:, None]
    one = tl.where(column == 2, 1.0, 0.0)
    others = tl.where(column == 0, r_y, tl.where(column == 1, s_y, one))
    return tl.reshape(tl.join(old, others), (BLOCK, 2 * P))


@triton.jit
def _gates(seen, weights, same, BLOCK: tl.constexpr, P: tl.constexpr):
    """Reset, update, what is reset, and the new state."""
    x = tl.dot(seen, weights, input_precision="tf32x3") + same[None, :]
    left, right = tl.split(tl.reshape(x, (BLOCK, P, 2, 2)))
    reset, update = tl.split(left)
    state, inside = tl.split(right)
    reset = _sigmoid(reset)
    return reset, _sigmoid(update), state, 2 * _sigmoid(2 * (inside + reset * state)) - 1


@triton.jit
def _back_through(own, old, reset, update, state, fresh, BLOCK: tl.constexpr, P: tl.constexpr):
    """(BLOCK, 4 P) the slopes by what is put into the gates, in the order of their weights."""
    d_inside = own * (1 - update) * (1 - fresh * fresh)
    d_reset = d_inside * state * reset * (1 - reset)
    d_update = own * (old - fresh) * update * (1 - update)
    left, right = tl.join(d_reset, d_update), tl.join(d_inside * reset, d_inside)
    return tl.reshape(tl.join(left, right), (BLOCK, 4 * P))


@triton.jit
def _walk_back(
    mu, r, s, same, weights, weight_theta, bias_theta, by_theta,
    room, sums, matrices, vectors, steps, slots, splits,
    H: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    row = program // splits
    unit, gate, part = tl.arange(0, P), tl.arange(0, 4 * P), tl.arange(0, 2 * P)
    to_theta = tl.load(weight_theta + unit, mask=unit < H, other=0.0)[None, :]
    to_gates = tl.load(weights + part[:, None] * (4 * P) + gate[None, :])
    to_states = tl.load(weights + unit[None, :] * (8 * P) + gate[:, None])
    of_weights = tl.zeros((4 * P, 2 * P), tl.float32)
    of_to_theta = tl.zeros((BLOCK, P), tl.float32)
    of_start = tl.zeros((BLOCK,), tl.float32)
    aside = room + program * steps * (BLOCK * P)
    aside += tl.arange(0, BLOCK)[:, None] * P + unit[None, :]
    for first in range((program % splits) * BLOCK, slots, splits * BLOCK):
        slot = first + tl.arange(0, BLOCK)
        there = slot < slots
        used = there[:, None] & (unit[None, :] < H)
        old = tl.load(mu + (row * slots + slot)[:, None] * H + unit[None, :], mask=used, other=0.0)
        for t in range(steps):
            at = row * steps + t
            tl.store(aside + t * (BLOCK * P), old)
            seen = _seen(old, r, s, at * slots + slot, there, BLOCK, P)
            given = tl.load(same + at * (4 * P) + gate)
            reset, update, state, fresh = _gates(seen, to_gates, given, BLOCK, P)
            old = fresh + update * (old - fresh)
        tl.debug_barrier()  # what one thread put aside may be for another
        moved = old
        back = tl.zeros((BLOCK, P), tl.float32)  # the slope of the loss by the states after a step
        for i in range(steps):
            back_to = steps - 1 - i
            at = row * steps + back_to
            old = tl.load(aside + back_to * (BLOCK * P))
            seen = _seen(old, r, s, at * slots + slot, there, BLOCK, P)
            given = tl.load(same + at * (4 * P) + gate)
            reset, update, state, fresh = _gates(seen, to_gates, given, BLOCK, P)
            theta = _sigmoid(tl.sum(moved * to_theta, axis=1) + tl.load(bias_theta))
            # Places beyond the labels have no slope, whatever the bias made of them.
            slope = tl.load(by_theta + at * slots + slot, mask=there, other=0.0)
            slope = slope * theta * (1 - theta)
            own = back + slope[:, None] * to_theta
            d = _back_through(own, old, reset, update, state, fresh, BLOCK, P)
            back = tl.dot(d, to_states, acc=own * update, input_precision="tf32x3")
            of_weights = tl.dot(tl.trans(d), seen, acc=of_weights, input_precision="tf32x3")
            of_to_theta += slope[:, None] * moved
            of_start += slope
            line = sums + (program * steps + back_to) * (4 * P) + gate
            tl.store(line, tl.load(line) + tl.sum(d, axis=0))
            moved = old
        tl.debug_barrier()  # the next labels take the same room
    place = matrices + program * (8 * P * P) + gate[:, None] * (2 * P) + part[None, :]
    tl.store(place, of_weights)
    line = vectors + program * (2 * P) + unit
    tl.store(line, tl.sum(of_to_theta, axis=0))
    tl.store(line + P, tl.where(unit == 0, tl.sum(of_start, axis=0), 0.0))
