# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What a step of the label combiner puts in for all labels of a stream, in one kernel."""

from __future__ import annotations

from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["shared_many"]

_INPUTS = 64  # parts of h at a time


def shared_many(
    h: Tensor, missed: Tensor, weight_h: Tensor, weight_flags: Tensor, bias: Tensor
) -> Tensor:
    """(n, 3 hidden) see :meth:`labelmem.label_combiner.LabelCombiner.shared`; no gradient."""
    (n, dim), size = h.shape, len(bias)
    out = h.new_empty(n, size)
    given = (h.contiguous(), missed.contiguous(), weight_h, weight_flags, bias, out)
    wide = triton.next_power_of_2(size)
    if n:
        _shared[(n,)](*given, dim, size, WIDE=wide, INPUTS=_INPUTS, num_warps=8)
    return out


@triton.jit
def _shared(
    h, missed, weight_h, weight_flags, bias, out, dim, size, WIDE: tl.constexpr,
    INPUTS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, WIDE)
    used = unit < size
    total = tl.load(bias + unit, mask=used, other=0.0)
    for flag in tl.static_range(2):
        by_flag = tl.load(weight_flags + unit * 2 + flag, mask=used, other=0.0)
        total += by_flag * tl.load(missed + row * 2 + flag)
    for first in range(0, dim, INPUTS):
        part = first + tl.arange(0, INPUTS)
        x = tl.load(h + row * dim + part, mask=part < dim, other=0.0)
        there = used[:, None] & (part < dim)[None, :]
        weight = tl.load(weight_h + unit[:, None] * dim + part[None, :], mask=there, other=0.0)
        total += tl.sum(weight * x[None, :], axis=1)
    tl.store(out + row * size + unit, total, mask=used)
