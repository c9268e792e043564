# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Eq. 5 of many streams in two passes over the labels; the second finds them in the cache."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.kernels_triton import tl, triton

__all__ = ["mixed"]

_BLOCK = 2048


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
        _mix[(n,)](r, s, theta, P, width, *theta.stride(), partition, BLOCK=_BLOCK, num_warps=8)
    return P


@triton.jit
def _mix(
    r, s, theta, P, width, theta_row, theta_column, partition: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), tl.float32)
    rest, from_model, from_memory, held = zero, zero, zero, zero
    for first in range(0, width, BLOCK):
        y = first + place
        there = y < width
        r_y = tl.load(r + row * width + y, mask=there, other=0.0)
        s_y = tl.load(s + row * width + y, mask=there, other=0.0)
        gate = tl.load(theta + row * theta_row + y * theta_column, mask=there, other=0.0)
        if partition:
            r_y = tl.where(s_y > 0, 0.0, r_y)
        rest += r_y
        from_model += (1 - gate) * r_y
        from_memory += gate * s_y
        held = tl.maximum(held, s_y)
    left = tl.sum(rest, axis=0)
    scale = 1.0
    if partition:
        scale = 1 / tl.where(left > 0, left, 1.0)
    total = scale * tl.sum(from_model, axis=0) + tl.sum(from_memory, axis=0)
    holds = (tl.max(held, axis=0) > 0) & (total > 0)
    whole = 1 / tl.where(holds, total, 1.0)
    for first in range(0, width, BLOCK):
        y = first + place
        there = y < width
        r_y = tl.load(r + row * width + y, mask=there, other=0.0)
        s_y = tl.load(s + row * width + y, mask=there, other=0.0)
        gate = tl.load(theta + row * theta_row + y * theta_column, mask=there, other=0.0)
        if partition:
            r_y = tl.where(s_y > 0, 0.0, r_y) * scale
        p_y = tl.where(holds, ((1 - gate) * r_y + gate * s_y) * whole, r_y)
        tl.store(P + row * width + y, p_y, mask=there)
