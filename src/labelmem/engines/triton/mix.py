# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 1 and 5 of many streams: each row of labels is fetched once.

A program holds its row. One that is too long for that is gone over twice, a piece at a time: the
second time it is still near.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.engines.triton.runtime import tl, triton

__all__ = ["believed_by_model", "mixed"]

_FORM: dict[str, Any] = {"WHOLE": 16384, "BLOCK": 1024, "num_warps": 8}
"""The labels of the longest row that is held, and how others are gone over.
``benchmarks/gpu.py --forms`` compares such forms."""


def _cut(width: int) -> dict[str, Any]:
    """Labels at a time, the warps that hold them, and whether these are all.

    Numbers of labels at a time are powers of two, so that a row is held as a large part and a small
    one: half of the places for 8,200 labels would be empty otherwise.
    """
    block, warps = _FORM["BLOCK"], _FORM["num_warps"]
    if width > _FORM["WHOLE"]:
        return {"BLOCK": block, "REST": 0, "ONCE": False, "num_warps": warps}
    block = max(1024, triton.next_power_of_2(width + 1) // 2)
    rest = 0 if width <= block else max(128, triton.next_power_of_2(width - block))
    warps = warps if block + rest <= 10240 else 2 * warps
    return {"BLOCK": block, "REST": rest, "ONCE": True, "num_warps": warps}


def believed_by_model(logits: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """:func:`labelmem.functional.model_score`, with zeros for labels that the model lacks.

    Returns
    -------
    r, finite
        (n, width), and whether the sum of logits (n,) is finite.
    """
    n, own = logits.shape
    r = logits.new_empty(n, width)
    finite = torch.empty(n, dtype=torch.bool, device=r.device)
    if n:
        told = (logits.contiguous(), r, finite, own, width)
        _softmax[(n,)](*told, **_cut(width), maxnreg=64)  # it takes more where it need not
    return r, finite


def mixed(r: Tensor, s: Tensor, theta: Tensor, partition: bool) -> tuple[Tensor, Tensor]:
    """:func:`labelmem.functional.mix` of r, or of what of it lies outside of memory, and s.

    Parameters
    ----------
    r, s
        (n, W).
    theta
        (n, W), expanded where it is the same for all labels.
    partition
        Whether labels in memory are left to the memory: :func:`labelmem.functional.outside`.

    Returns
    -------
    P, highest
        (n, W), and the two highest of each row (n, 2).
    """
    n, width = r.shape
    P = torch.empty((n, width), dtype=r.dtype, device=r.device)
    highest = P.new_empty(n, 2)
    r, s = (x if x.stride(1) == 1 else x.contiguous() for x in (r, s))
    if n:
        rows = (r.stride(0), s.stride(0), *theta.stride())
        _mix[(n,)](r, s, theta, P, highest, width, *rows, partition, **_cut(width))
    return P, highest


@triton.jit
def _softmax(
    logits, r, finite, own, width,
    ONCE: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits, r = logits + row * own, r + row * width
    place, less = tl.arange(0, BLOCK), -float("inf")
    if ONCE:
        x = tl.load(logits + place, mask=place < own, other=less)
        top = tl.max(x, axis=0)
        if REST:
            more = BLOCK + tl.arange(0, REST)
            x_more = tl.load(logits + more, mask=more < own, other=less)
            top = tl.maximum(top, tl.max(x_more, axis=0))
        p = tl.exp(x - top)
        whole, given = tl.sum(p, axis=0), tl.sum(tl.where(place < own, x, 0.0), axis=0)
        if REST:
            p_more = tl.exp(x_more - top)
            whole += tl.sum(p_more, axis=0)
            given += tl.sum(tl.where(more < own, x_more, 0.0), axis=0)
        tl.store(r + place, p / whole, mask=place < width)
        if REST:
            tl.store(r + more, p_more / whole, mask=more < width)
    else:
        # Each lane keeps its largest x and the sum of e^(x - largest); -3.4e38 is below all.
        high = tl.full((BLOCK,), -3.4e38, tl.float32)
        total, given = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        for start in range(0, own, BLOCK):
            y = start + place
            x = tl.load(logits + y, mask=y < own, other=less)
            given += tl.where(y < own, x, 0.0)
            higher = tl.maximum(high, x)
            total = total * tl.exp(high - higher) + tl.exp(x - higher)
            high = higher
        top = tl.max(high, axis=0)
        whole, given = tl.sum(total * tl.exp(high - top), axis=0), tl.sum(given, axis=0)
        for start in range(0, width, BLOCK):
            y = start + place
            x = tl.load(logits + y, mask=y < own, other=less)
            tl.store(r + y, tl.exp(x - top) / whole, mask=y < width)
    tl.store(finite + row, tl.abs(given) < float("inf"))


@triton.jit
def _parts(r, s, theta, y, width, theta_column, partition: tl.constexpr):
    """The parts of model and memory in the labels y, what is left of r, and s.

    Without a partition, the parts need no scale: all is with the model's, and few registers are
    used, so that more programs run.
    """
    there = y < width
    r_y = tl.load(r + y, mask=there, other=0.0)
    s_y = tl.load(s + y, mask=there, other=0.0)
    gate = tl.load(theta + y * theta_column, mask=there, other=0.0)
    if partition:
        r_y = tl.where(s_y > 0, 0.0, r_y)
        return (1 - gate) * r_y, gate * s_y, r_y, s_y
    return (1 - gate) * r_y + gate * s_y, tl.zeros_like(s_y), r_y, s_y


@triton.jit
def _shares(left, from_model, from_memory, held, partition: tl.constexpr):
    """What r is scaled by, whether there is a memory, and one over the total."""
    scale = 1.0
    if partition:
        scale = 1 / tl.where(left > 0, left, 1.0)
    total = scale * from_model + from_memory
    holds = (held > 0) & (total > 0)
    return scale, holds, 1 / tl.where(holds, total, 1.0)


@triton.jit
def _put(P, y, width, from_model, from_memory, r_y, scale, holds, whole):
    """Eq. 5 of the labels y."""
    p_y = tl.where(holds, (scale * from_model + from_memory) * whole, scale * r_y)
    tl.store(P + y, p_y, mask=y < width)
    return p_y


@triton.jit
def _two_highest(high, after):
    """The two highest values of all lanes, each of which has two."""
    top = tl.max(high, axis=0)
    shared = tl.sum((high == top).to(tl.int32), axis=0) > 1
    second = tl.max(tl.where(high == top, after, high), axis=0)
    return top, tl.where(shared, top, second)


@triton.jit
def _mix(
    r, s, theta, P, highest, width, r_row, s_row, theta_row, theta_column,
    partition: tl.constexpr, ONCE: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    r, s, P, theta = r + row * r_row, s + row * s_row, P + row * width, theta + row * theta_row
    place = tl.arange(0, BLOCK)
    if ONCE:
        own, kept, r_y, s_y = _parts(r, s, theta, place, width, theta_column, partition)
        model, held, left, memory = tl.sum(own, axis=0), tl.max(s_y, axis=0), 0.0, 0.0
        if partition:
            left, memory = tl.sum(r_y, axis=0), tl.sum(kept, axis=0)
        if REST:
            more = BLOCK + tl.arange(0, REST)
            own_more, kept_more, r_more, s_more = _parts(
                r, s, theta, more, width, theta_column, partition
            )
            model, held = model + tl.sum(own_more, axis=0), tl.maximum(held, tl.max(s_more, axis=0))
            if partition:
                left, memory = left + tl.sum(r_more, axis=0), memory + tl.sum(kept_more, axis=0)
        scale, holds, whole = _shares(left, model, memory, held, partition)
        p = _put(P, place, width, own, kept, r_y, scale, holds, whole)
        if REST:
            p_more = _put(P, more, width, own_more, kept_more, r_more, scale, holds, whole)
        top, second = _two_highest(p, 0.0)
        if REST:
            top_more, second_more = _two_highest(p_more, 0.0)
            second = tl.maximum(tl.minimum(top, top_more), tl.maximum(second, second_more))
            top = tl.maximum(top, top_more)
    else:
        zero = tl.zeros((BLOCK,), tl.float32)
        left, model, memory, held = zero, zero, zero, zero
        for start in range(0, width, BLOCK):
            own, kept, r_y, s_y = _parts(r, s, theta, start + place, width, theta_column, partition)
            model, held = model + own, tl.maximum(held, s_y)
            if partition:
                left, memory = left + r_y, memory + kept
        left, model, memory = tl.sum(left, axis=0), tl.sum(model, axis=0), tl.sum(memory, axis=0)
        scale, holds, whole = _shares(left, model, memory, tl.max(held, axis=0), partition)
        high, after = zero, zero
        for start in range(0, width, BLOCK):
            y = start + place
            own, kept, r_y, _ = _parts(r, s, theta, y, width, theta_column, partition)
            p = _put(P, y, width, own, kept, r_y, scale, holds, whole)
            after, high = tl.maximum(after, tl.minimum(high, p)), tl.maximum(high, p)
        top, second = _two_highest(high, after)
    tl.store(highest + row * 2, top)
    tl.store(highest + row * 2 + 1, second)
