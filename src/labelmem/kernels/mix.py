# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 1 and 5 of many streams: each row of labels is fetched once.

A program holds its row where that wastes little. A longer one is gone over twice, a piece at a
time: the second time it is still near, and small programs all find room at once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["believed_by_model", "mixed"]

_WHOLE = 4096  # labels that one program holds at a time
_FORM: dict[str, Any] = {"BLOCK": 1024, "num_warps": 8}
"""How longer rows are gone over. ``benchmarks/gpu.py --forms`` compares such forms."""


def _cut(width: int) -> dict[str, Any]:
    """Labels at a time, the warps that hold them, and whether these are all."""
    block = max(1024, triton.next_power_of_2(width))
    if block > _WHOLE:
        return {**_FORM, "ONCE": False}
    return {"BLOCK": block, "num_warps": 8, "ONCE": True}


def believed_by_model(logits: Tensor, width: int) -> Tensor:
    """:func:`labelmem.functional.model_score`, with zeros for labels that the model lacks."""
    n, own = logits.shape
    r = torch.empty((n, width), dtype=logits.dtype, device=logits.device)
    if n and width:
        _softmax[(n,)](logits.contiguous(), r, own, width, **_cut(width))
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
    r, s = r.contiguous(), s.contiguous()
    if n and width:
        _mix[(n,)](r, s, theta, P, width, *theta.stride(), partition, **_cut(width))
    return P


@triton.jit
def _softmax(logits, r, own, width, ONCE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    if ONCE:
        x = tl.load(logits + row * own + place, mask=place < own, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(r + row * width + place, e / tl.sum(e, axis=0), mask=place < width)
    else:
        # Each lane keeps its largest x and the sum of e^(x - largest); -3.4e38 is below all.
        high = tl.full((BLOCK,), -3.4e38, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, own, BLOCK):
            y = first + place
            x = tl.load(logits + row * own + y, mask=y < own, other=-float("inf"))
            higher = tl.maximum(high, x)
            total = total * tl.exp(high - higher) + tl.exp(x - higher)
            high = higher
        top = tl.max(high, axis=0)
        whole = tl.sum(total * tl.exp(high - top), axis=0)
        for first in range(0, width, BLOCK):
            y = first + place
            x = tl.load(logits + row * own + y, mask=y < own, other=-float("inf"))
            tl.store(r + row * width + y, tl.exp(x - top) / whole, mask=y < width)


@triton.jit
def _parts(r, s, theta, row, y, width, theta_row, theta_column, partition: tl.constexpr):
    """What model and memory say of the labels y, and the memory's weight."""
    there = y < width
    r_y = tl.load(r + row * width + y, mask=there, other=0.0)
    s_y = tl.load(s + row * width + y, mask=there, other=0.0)
    gate = tl.load(theta + row * theta_row + y * theta_column, mask=there, other=0.0)
    if partition:
        r_y = tl.where(s_y > 0, 0.0, r_y)
    return r_y, s_y, gate


@triton.jit
def _shares(rest, from_model, from_memory, held, partition: tl.constexpr):
    """What r is scaled by, whether there is a memory, and one over the total."""
    left = tl.sum(rest, axis=0)
    scale = 1.0
    if partition:
        scale = 1 / tl.where(left > 0, left, 1.0)
    total = scale * tl.sum(from_model, axis=0) + tl.sum(from_memory, axis=0)
    holds = (tl.max(held, axis=0) > 0) & (total > 0)
    return scale, holds, 1 / tl.where(holds, total, 1.0)


@triton.jit
def _mix(
    r, s, theta, P, width, theta_row, theta_column, partition: tl.constexpr,
    ONCE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    if ONCE:
        r_y, s_y, gate = _parts(r, s, theta, row, place, width, theta_row, theta_column, partition)
        scale, holds, whole = _shares(r_y, (1 - gate) * r_y, gate * s_y, s_y, partition)
        r_y *= scale
        p_y = tl.where(holds, ((1 - gate) * r_y + gate * s_y) * whole, r_y)
        tl.store(P + row * width + place, p_y, mask=place < width)
    else:
        zero = tl.zeros((BLOCK,), tl.float32)
        rest, from_model, from_memory, held = zero, zero, zero, zero
        for first in range(0, width, BLOCK):
            r_y, s_y, gate = _parts(
                r, s, theta, row, first + place, width, theta_row, theta_column, partition
            )
            if partition:
                rest += r_y
                from_model += (1 - gate) * r_y
                from_memory += gate * s_y
            else:  # one sum is enough, and fewer registers let more programs run
                from_model += (1 - gate) * r_y + gate * s_y
            held = tl.maximum(held, s_y)
        scale, holds, whole = _shares(rest, from_model, from_memory, held, partition)
        for first in range(0, width, BLOCK):
            y = first + place
            r_y, s_y, gate = _parts(r, s, theta, row, y, width, theta_row, theta_column, partition)
            r_y *= scale
            p_y = tl.where(holds, ((1 - gate) * r_y + gate * s_y) * whole, r_y)
            tl.store(P + row * width + y, p_y, mask=y < width)
