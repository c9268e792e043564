# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""A prediction of the stream combiner for many streams: ``stream_combiner`` in three kernels.

One says what the streams are like (``look.py``), one scores the labels in memory, and one
moves the recurrent state and decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from labelmem.engines.triton.look import cut_log, features_at, signals_many
from labelmem.engines.triton.runtime import tl, triton

__all__ = ["decide_many"]

_CELLS = 64  # positions that one program scores at a time


def decide_many(
    weights: Mapping[str, Tensor], past: Tensor, echo: Tensor, mu: Tensor, h: Tensor | None,
    r: Tensor, read: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Theta (n,), the corrected s (n, K), the first guess (n, K), the next mu, r's best label (n,).

    Parameters
    ----------
    weights
        Parameters and buffers of the combiner by name; without ``score_plain`` nothing is scored.
    past, echo, mu
        The streams' state.
    h
        (n, d), if it is seen.
    r, read
        What model and memory say; see :func:`labelmem.engines.triton.look.signals_many`.
    """
    (n, k), parts = read.label.shape, read.past.cosine.shape[2]
    mean, spread = weights["signals_mean"], weights["signals_spread"]
    signals, inside, best = signals_many(past, r, read, mean, spread)
    correct, width = "score_plain" in weights, len(weights["features_mean"])
    score, seen = r.new_empty(n, k), r.new_empty(n, k, width)
    wide = max(16, triton.next_power_of_2(width))
    units = weights["theta_outer"]
    sizes = {
        "F": width, "FP": wide, "U": len(mean), "UP": triton.next_power_of_2(len(mean)),
        "R": len(units), "RP": max(16, triton.next_power_of_2(len(units))), "CORRECT": correct,
    }  # fmt: skip
    names = ("plain", "inner", "stream", "bias", "middle", "outer", "moved")
    scorer = {name: weights[f"score_{name}"] if correct else units for name in names}
    told = (read.strength, read.past.age, read.past.writes, read.past.since_first, inside)
    blocks = (read.past.rates, read.past.cosine, read.past.size)
    _score[(n, triton.cdiv(k, _CELLS))](
        read.label, read.score, *told, *blocks, weights["features_mean"],
        weights["features_spread"], signals, *(scorer[name] for name in names[:6]), score, seen, k,
        B=parts, CELLS=_CELLS, **sizes,
    )  # fmt: skip
    hidden, dim = mu.shape[1], 0 if h is None else h.shape[1]
    theta, new = r.new_empty(n), torch.empty_like(mu)
    s, guess = r.new_empty(n, k), r.new_empty(n, k)
    cell = [weights[f"gru.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    _decide[(n,)](
        read.label, score, seen, signals, echo, mu, mu if h is None else h.contiguous(), *cell,
        scorer["moved"], weights["theta_inner"], units, weights["bias_theta"],
        theta, s, guess, new, k, H=hidden, HP=triton.next_power_of_2(hidden),
        D=dim, DP=triton.next_power_of_2(max(dim, 1)), CELLS=triton.next_power_of_2(k),
        **sizes, num_warps=8, maxnreg=128,
    )  # fmt: skip
    return theta, s, guess, new, best


@triton.jit
def _times(
    matrix, first, size, x, there, from_column, stride, wide,
    WIDE: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Rows ``first`` to ``first + size`` of a matrix, some of its columns, times a vector."""
    unit, column = tl.arange(0, SIZE)[:, None], tl.arange(0, WIDE)[None, :]
    place = matrix + (first + unit) * stride + from_column + column
    part = tl.load(place, mask=(unit < size) & (column < wide), other=0.0)
    return tl.sum(part * tl.where(there, x, 0.0)[None, :], axis=1)


@triton.jit
def _score(
    label, base, strength, age, writes, first, inside, rates, cosine, size, mean, spread, signals,
    plain, inner, stream, bias, middle, outer, score, seen, k,
    B: tl.constexpr, CELLS: tl.constexpr, F: tl.constexpr, FP: tl.constexpr, U: tl.constexpr,
    UP: tl.constexpr, R: tl.constexpr, RP: tl.constexpr, CORRECT: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cell = tl.program_id(1) * CELLS + tl.arange(0, CELLS)
    there = cell < k
    alive = tl.load(label + row * k + cell, mask=there, other=-1) >= 0
    if tl.sum(alive.to(tl.int32), axis=0) == 0:
        return  # nobody looks at positions without a label
    x = features_at(
        row, cell, k, alive, strength, age, writes, first, inside, rates, cosine, size,
        mean, spread, B, F, FP,
    )  # fmt: skip
    column, unit = tl.arange(0, FP), tl.arange(0, RP)
    place = (row * k + cell)[:, None] * F + column[None, :]
    tl.store(seen + place, x, mask=there[:, None] & (column < F)[None, :])
    value = cut_log(tl.load(base + row * k + cell, mask=alive, other=0.0))
    if CORRECT:
        sign = tl.arange(0, UP)
        told = tl.load(signals + row * U + sign, mask=sign < U, other=0.0)
        shared = _times(stream, 0, R, told, sign < U, 0, U, U, UP, RP)
        shared += tl.load(bias + unit, mask=unit < R, other=0.0)
        used = (unit < R)[None, :]
        weight = tl.load(
            inner + unit[None, :] * F + column[:, None],
            mask=used & (column < F)[:, None],
            other=0.0,
        )
        one = tl.maximum(tl.dot(x, weight, input_precision="tf32x3") + shared[None, :], 0.0)
        weight = tl.load(
            middle + unit[None, :] * R + unit[:, None], mask=used & (unit < R)[:, None], other=0.0
        )
        two = tl.maximum(tl.dot(one, weight, input_precision="tf32x3"), 0.0)
        out = tl.load(outer + unit, mask=unit < R, other=0.0)
        line = tl.load(plain + column, mask=column < F, other=0.0)
        value += tl.sum(x * line[None, :], axis=1) + tl.sum(two * out[None, :], axis=1)
    tl.store(score + row * k + cell, value, mask=there)


@triton.jit
def _log_softmax(score, alive):
    """Over the labels in memory; 0 where there is none."""
    top = tl.max(tl.where(alive, score, -float("inf")), axis=0)
    top = tl.where(top > -float("inf"), top, 0.0)
    total = tl.sum(tl.where(alive, tl.exp(score - top), 0.0), axis=0)
    return tl.where(alive, score - top - tl.log(tl.where(total > 0, total, 1.0)), 0.0)


@triton.jit
def _undecided(log_s, s, alive):
    """Half the entropy of s, and half its largest logarithm."""
    top = tl.max(tl.where(alive, log_s, -15.0), axis=0)
    holds = tl.sum(tl.where(alive, 1.0, 0.0), axis=0) > 0
    return -tl.sum(s * log_s, axis=0) / 2, tl.where(holds, top, 0.0) / 2


@triton.jit
def _gate(
    gate: tl.constexpr, matrix, bias, told, echo_0, echo_1, entropy, top, hidden,
    H: tl.constexpr, HP: tl.constexpr, U: tl.constexpr, UP: tl.constexpr, D: tl.constexpr,
    DP: tl.constexpr,
):  # fmt: skip
    """What is seen puts into one gate of the recurrent cell."""
    unit, sign = tl.arange(0, HP), tl.arange(0, UP)
    wide: tl.constexpr = U + 4 + D
    own = unit < H
    first = gate * H
    total = tl.load(bias + first + unit, mask=own, other=0.0)
    total += _times(matrix, first, H, told, sign < U, 0, wide, U, UP, HP)
    line = matrix + (first + unit) * wide + U
    total += echo_0 * tl.load(line, mask=own, other=0.0)
    total += echo_1 * tl.load(line + 1, mask=own, other=0.0)
    total += entropy * tl.load(line + 2, mask=own, other=0.0)
    total += top * tl.load(line + 3, mask=own, other=0.0)
    if D > 0:
        total += _times(matrix, first, H, hidden, tl.arange(0, DP) < D, U + 4, wide, D, DP, HP)
    return total


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _moved_on(
    old, from_input, from_mu, bias_input, bias_mu, told, echo_0, echo_1, entropy, top, hidden,
    H: tl.constexpr, HP: tl.constexpr, U: tl.constexpr, UP: tl.constexpr, D: tl.constexpr,
    DP: tl.constexpr,
):  # fmt: skip
    """The recurrent state of the stream that follows ``old`` (HP,)."""
    unit = tl.arange(0, HP)
    own = unit < H
    x = _gate(0, from_input, bias_input, told, echo_0, echo_1, entropy, top, hidden,
              H, HP, U, UP, D, DP)  # fmt: skip
    state = _times(from_mu, 0, H, old, own, 0, H, H, HP, HP)
    reset = _sigmoid(x + state + tl.load(bias_mu + unit, mask=own, other=0.0))
    x = _gate(1, from_input, bias_input, told, echo_0, echo_1, entropy, top, hidden,
              H, HP, U, UP, D, DP)  # fmt: skip
    state = _times(from_mu, H, H, old, own, 0, H, H, HP, HP)
    update = _sigmoid(x + state + tl.load(bias_mu + H + unit, mask=own, other=0.0))
    x = _gate(2, from_input, bias_input, told, echo_0, echo_1, entropy, top, hidden,
              H, HP, U, UP, D, DP)  # fmt: skip
    state = _times(from_mu, 2 * H, H, old, own, 0, H, H, HP, HP)
    state += tl.load(bias_mu + 2 * H + unit, mask=own, other=0.0)
    fresh = 2 * _sigmoid(2 * (x + reset * state)) - 1
    return tl.where(own, fresh + update * (old - fresh), 0.0)


@triton.jit
def _decide(
    label, score, seen, signals, echo, mu, h, from_input, from_mu, bias_input, bias_mu,
    moved, theta_inner, theta_outer, bias_theta, theta_out, s_out, guess_out, mu_out, k,
    H: tl.constexpr, HP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, CELLS: tl.constexpr,
    F: tl.constexpr, FP: tl.constexpr, U: tl.constexpr, UP: tl.constexpr, R: tl.constexpr,
    RP: tl.constexpr, CORRECT: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cell = tl.arange(0, CELLS)
    there = cell < k
    alive = tl.load(label + row * k + cell, mask=there, other=-1) >= 0
    value = tl.load(score + row * k + cell, mask=alive, other=0.0)
    log_s = _log_softmax(value, alive)
    s = tl.where(alive, tl.exp(log_s), 0.0)
    tl.store(guess_out + row * k + cell, s, mask=there)
    entropy, top = _undecided(log_s, s, alive)
    sign, unit, far = tl.arange(0, UP), tl.arange(0, HP), tl.arange(0, DP)
    told = tl.load(signals + row * U + sign, mask=sign < U, other=0.0)
    echo_0, echo_1 = tl.load(echo + row * 2), tl.load(echo + row * 2 + 1)
    own = unit < H
    old = tl.load(mu + row * H + unit, mask=own, other=0.0)
    hidden = tl.load(h + row * D + far, mask=far < D, other=0.0)
    now = _moved_on(
        old, from_input, from_mu, bias_input, bias_mu, told, echo_0, echo_1, entropy, top, hidden,
        H, HP, U, UP, D, DP,
    )  # fmt: skip
    tl.store(mu_out + row * H + unit, now, mask=own)
    if CORRECT:
        column = tl.arange(0, FP)
        weight = tl.load(
            moved + unit[:, None] * F + column[None, :],
            mask=own[:, None] & (column < F)[None, :],
            other=0.0,
        )
        by = tl.sum(weight * now[:, None], axis=0)
        features = tl.load(
            seen + (row * k + cell)[:, None] * F + column[None, :],
            mask=alive[:, None] & (column < F)[None, :],
            other=0.0,
        )
        log_s = _log_softmax(value + tl.sum(features * by[None, :], axis=1), alive)
        s = tl.where(alive, tl.exp(log_s), 0.0)
        entropy, top = _undecided(log_s, s, alive)
    tl.store(s_out + row * k + cell, s, mask=there)
    wide: tl.constexpr = H + U + 4
    inner = tl.arange(0, RP)
    used = inner < R
    total = _times(theta_inner, 0, R, now, own, 0, wide, H, HP, RP)
    total += _times(theta_inner, 0, R, told, sign < U, H, wide, U, UP, RP)
    line = theta_inner + inner * wide + H + U
    total += echo_0 * tl.load(line, mask=used, other=0.0)
    total += echo_1 * tl.load(line + 1, mask=used, other=0.0)
    total += entropy * tl.load(line + 2, mask=used, other=0.0)
    total += top * tl.load(line + 3, mask=used, other=0.0)
    outer = tl.load(theta_outer + inner, mask=used, other=0.0)
    z = tl.sum(tl.maximum(total, 0.0) * outer, axis=0) + tl.load(bias_theta)
    tl.store(theta_out + row, _sigmoid(z))
