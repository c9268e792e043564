# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""What the gates of the label combiner's kernels are made of, in as few instructions as possible.

Powers of two and inverses are one instruction each. Products are made on tensor cores for half
precision, of two parts of each number: together they have all bits but the last one or two.
"""

from __future__ import annotations

from labelmem.engines.triton.runtime import tl, triton

__all__ = ["coarse_part", "in_half", "inverse", "inverses", "power_of_two", "product_in_parts"]


@triton.jit
def power_of_two(x, EXACT: tl.constexpr):
    """Two to the x; a device that need not care for the tiniest numbers has one instruction."""
    if EXACT:
        return tl.exp2(x)
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def inverse(x, EXACT: tl.constexpr):
    """One over x, likewise."""
    if EXACT:
        return 1 / x
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def inverses(x, EXACT: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr):
    """One over each x: two of them by one division, where numbers leave room for their product."""
    p, q = tl.split(tl.reshape(x, (BLOCK, P // 2, 2)))
    both = inverse(p * q, EXACT)
    return tl.reshape(tl.join(both * q, both * p), (BLOCK, P))


@triton.jit
def in_half(x):
    """What half precision has room for: gates are closed or open long before."""
    return tl.maximum(tl.minimum(x, 60000.0), -60000.0)


@triton.jit
def coarse_part(x):
    """The first eleven bits of numbers: as many as half precision has."""
    return x.to(tl.float16)


@triton.jit
def product_in_parts(coarse, fine, weight_coarse, weight_fine, acc):
    """States times weights, both in two parts; what two fine parts make together is lost.

    States lie between -1 and 1, where half precision has room for all bits of both parts.
    """
    acc = tl.dot(coarse, weight_fine.to(tl.float16), acc=acc)
    acc = tl.dot(fine.to(tl.float16), weight_coarse, acc=acc)
    return tl.dot(coarse, weight_coarse, acc=acc)
