# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 1 and 5 of many streams: each row of labels is fetched once.

A program holds its row. One that is too long for that is gone over twice, a piece at a time: the
second time it is still near.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.kernels.triton import tl, triton

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


def believed_by_model(logits: Tensor, width: int, out: Tensor | None = None) -> Tensor:
    """:func:`labelmem.functional.model_score`, with zeros for labels that the model lacks.

    ``out`` (n, width), whose rows are whole, is where it is put.
    """
    n, own = logits.shape
    r = torch.empty((n, width), dtype=logits.dtype, device=logits.device) if out is None else out
    if n and width:
        _softmax[(n,)](logits.contiguous(), r, own, width, r.stride(0), **_cut(width))
    return r


def mixed(r: Tensor, s: Tensor, theta: Tensor, partition: bool) -> Tensor:
    """:func:`labelmem.functional.mix` of r, or of what of it lies outside of memory, and s.

    Parameters
    ----------
    r, s
        (n, W).
    theta
        (n, W), expanded where it is the same for all labels.
    partition
        Whether labels in memory are left to the memory: :func:`labelmem.functional.outside`.
    """
    n, width = r.shape
    P = torch.empty((n, width), dtype=r.dtype, device=r.device)
    r, s = (x if x.stride(1) == 1 else x.contiguous() for x in (r, s))
    if n and width:
        rows = (r.stride(0), s.stride(0), *theta.stride())
        _mix[(n,)](r, s, theta, P, width, *rows, partition, **_cut(width))
    return P


@triton.jit
def _softmax(
    logits, r, own, width, r_row, ONCE: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits, r = logits + row * own, r + row * r_row
    place, less = tl.arange(0, BLOCK), -float("inf")
    if ONCE:
        x = tl.load(logits + place, mask=place < own, other=less)
        top = tl.max(x, axis=0)
        if REST:
            more = BLOCK + tl.arange(0, REST)
            x_more = tl.load(logits + more, mask=more < own, other=less)
            top = tl.maximum(top, tl.max(x_more, axis=0))
        e = tl.exp(x - top)
        total = tl.sum(e, axis=0)
        if REST:
            e_more = tl.exp(x_more - top)
            total += tl.sum(e_more, axis=0)
            tl.store(r + more, e_more / total, mask=more < width)
        tl.store(r + place, e / total, mask=place < width)
    else:
        # Each lane keeps its largest x and the sum of e^(x - largest); -3.4e38 is below all.
        high = tl.full((BLOCK,), -3.4e38, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, own, BLOCK):
            y = first + place
            x = tl.load(logits + y, mask=y < own, other=less)
            higher = tl.maximum(high, x)
            total = total * tl.exp(high - higher) + tl.exp(x - higher)
            high = higher
        top = tl.max(high, axis=0)
        whole = tl.sum(total * tl.exp(high - top), axis=0)
        for first in range(0, width, BLOCK):
            y = first + place
            x = tl.load(logits + y, mask=y < own, other=less)
            tl.store(r + y, tl.exp(x - top) / whole, mask=y < width)


@triton.jit
def _parts(r, s, theta, y, width, theta_column, partition: tl.constexpr):
    """What model and memory say of the labels y, and the memory's weight."""
    there = y < width
    r_y = tl.load(r + y, mask=there, other=0.0)
    s_y = tl.load(s + y, mask=there, other=0.0)
    gate = tl.load(theta + y * theta_column, mask=there, other=0.0)
    if partition:
        r_y = tl.where(s_y > 0, 0.0, r_y)
    return (1 - gate) * r_y, gate * s_y, r_y, s_y


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


@triton.jit
def _mix(
    r, s, theta, P, width, r_row, s_row, theta_row, theta_column, partition: tl.constexpr,
    ONCE: tl.constexpr, BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    r, s, P, theta = r + row * r_row, s + row * s_row, P + row * width, theta + row * theta_row
    place = tl.arange(0, BLOCK)
    if ONCE:
        own, kept, r_y, s_y = _parts(r, s, theta, place, width, theta_column, partition)
        left, held = tl.sum(r_y, axis=0), tl.max(s_y, axis=0)
        model, memory = tl.sum(own, axis=0), tl.sum(kept, axis=0)
        if REST:
            more = BLOCK + tl.arange(0, REST)
            own_more, kept_more, r_more, s_more = _parts(
                r, s, theta, more, width, theta_column, partition
            )
            left, held = left + tl.sum(r_more, axis=0), tl.maximum(held, tl.max(s_more, axis=0))
            model, memory = model + tl.sum(own_more, axis=0), memory + tl.sum(kept_more, axis=0)
        scale, holds, whole = _shares(left, model, memory, held, partition)
        _put(P, place, width, own, kept, r_y, scale, holds, whole)
        if REST:
            _put(P, more, width, own_more, kept_more, r_more, scale, holds, whole)
    else:
        zero = tl.zeros((BLOCK,), tl.float32)
        left, model, memory, held = zero, zero, zero, zero
        for first in range(0, width, BLOCK):
            own, kept, r_y, s_y = _parts(r, s, theta, first + place, width, theta_column, partition)
            if partition:
                left, model, memory = left + r_y, model + own, memory + kept
            else:  # one sum is enough, and fewer registers let more programs run
                model += own + kept
            held = tl.maximum(held, s_y)
        left, model, memory = tl.sum(left, axis=0), tl.sum(model, axis=0), tl.sum(memory, axis=0)
        scale, holds, whole = _shares(left, model, memory, tl.max(held, axis=0), partition)
        for first in range(0, width, BLOCK):
            y = first + place
            own, kept, r_y, _ = _parts(r, s, theta, y, width, theta_column, partition)
            _put(P, y, width, own, kept, r_y, scale, holds, whole)
