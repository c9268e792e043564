# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""The output layer of many streams over many labels, from short vectors h."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from labelmem.kernels.triton import tl, triton

__all__ = ["LONGEST", "outputs_many"]

LONGEST = 128
"""Of the vectors h: a program holds all of its own. Longer ones are better left to a library."""
_FORM: dict[str, Any] = {"STREAMS": 64, "LABELS": 128, "num_warps": 8}
"""Of which streams and labels a program makes the logits."""


def outputs_many(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Logits (n, L) of h (n, d), with weight (L, d) and bias (L,); no gradient."""
    (n, dim), labels = h.shape, len(bias)
    out = h.new_empty(n, labels)
    grid = (triton.cdiv(n, _FORM["STREAMS"]), triton.cdiv(labels, _FORM["LABELS"]))
    given = [x.contiguous() for x in (h, weight, bias)]
    if n:
        _outputs[grid](
            *given, out, n, labels, D=dim, WIDE=max(16, triton.next_power_of_2(dim)), **_FORM
        )
    return out


@triton.jit
def _outputs(
    h, weight, bias, out, n, labels, D: tl.constexpr, WIDE: tl.constexpr,
    STREAMS: tl.constexpr, LABELS: tl.constexpr,
):  # fmt: skip
    stream = tl.program_id(0).to(tl.int64) * STREAMS + tl.arange(0, STREAMS)
    label = tl.program_id(1).to(tl.int64) * LABELS + tl.arange(0, LABELS)
    part = tl.arange(0, WIDE)
    there = (stream < n)[:, None] & (part < D)[None, :]
    x = tl.load(h + stream[:, None] * D + part[None, :], mask=there, other=0.0)
    there = (label < labels)[None, :] & (part < D)[:, None]
    w = tl.load(weight + label[None, :] * D + part[:, None], mask=there, other=0.0)
    start = tl.load(bias + label, mask=label < labels, other=0.0)
    # Three products of the numbers' parts on tensor cores have as many bits as one without them.
    logits = tl.dot(x, w, input_precision="tf32x3") + start[None, :]
    there = (stream < n)[:, None] & (label < labels)[None, :]
    tl.store(out + stream[:, None] * labels + label[None, :], logits, mask=there)
