"""Convolutions of many pictures, each with a kernel of its own, and their gradients.

A convolution, its gradient by the input, which leads back through the same kernel, and its gradient
by the kernel, which compares input and slope at every offset: each gradient of one of the three is
one of the three again. Said to autograd in this closed form, the gradient of a gradient costs no
more for each product than the convolution itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

__all__ = ["own_convolution"]


def own_convolution(x: Tensor, kernel: Tensor, half: bool = False) -> Tensor:
    """Outputs (n, o, height, width) of pictures x (n, c, height, width), padded to their size.

    Parameters
    ----------
    kernel
        (n, o, c, k, k) that of each picture; k is odd.
    half
        Whether to round to 16 bits (bfloat16) before and after, here and in all gradients; their
        type stays what it is, so that they fit to those of the layers around.

    Examples
    --------
    >>> x, kernel = torch.ones(2, 1, 3, 3), torch.ones(2, 1, 1, 3, 3)
    >>> own_convolution(x, kernel * torch.tensor([1.0, 2.0]).view(2, 1, 1, 1, 1))[:, 0, 1]
    tensor([[ 6.,  9.,  6.],
            [12., 18., 12.]])
    """
    found: Tensor = _Convolved.apply(x, kernel, half)  # type: ignore[no-untyped-call]
    return found


def _way_back(slope: Tensor, kernel: Tensor, half: bool) -> Tensor:
    """(n, c, …) slopes (n, o, …) of outputs, brought back to the inputs."""
    found: Tensor = _Returned.apply(slope, kernel, half)  # type: ignore[no-untyped-call]
    return found


def _comparison(x: Tensor, slope: Tensor, size: int, half: bool) -> Tensor:
    """(n, o, c, k, k) x (n, c, …) times slope (n, o, …) at each offset: the kernel's gradient."""
    found: Tensor = _Compared.apply(x, slope, size, half)  # type: ignore[no-untyped-call]
    return found


class _Convolved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: Tensor, half: bool) -> Tensor:
        ctx.save_for_backward(x, kernel)
        ctx.half = half
        return _convolved(*_rounded(half, x, kernel)).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        x, kernel = ctx.saved_tensors
        by_x, by_kernel, _ = ctx.needs_input_grad
        return (
            _way_back(slope, kernel, ctx.half) if by_x else None,
            _comparison(x, slope, kernel.shape[-1], ctx.half) if by_kernel else None,
            None,
        )


class _Returned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, slope: Tensor, kernel: Tensor, half: bool) -> Tensor:
        ctx.save_for_backward(slope, kernel)
        ctx.half = half
        return _returned(*_rounded(half, slope, kernel)).to(slope.dtype)

    @staticmethod
    def backward(ctx: Any, x: Tensor) -> Any:
        slope, kernel = ctx.saved_tensors
        by_slope, by_kernel, _ = ctx.needs_input_grad
        return (
            own_convolution(x, kernel, ctx.half) if by_slope else None,
            _comparison(x, slope, kernel.shape[-1], ctx.half) if by_kernel else None,
            None,
        )


class _Compared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Tensor, size: int, half: bool) -> Tensor:
        ctx.save_for_backward(x, slope)
        ctx.half = half
        return _compared(*_rounded(half, x, slope), size).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, kernel: Tensor) -> Any:
        x, slope = ctx.saved_tensors
        by_x, by_slope, *_ = ctx.needs_input_grad
        return (
            _way_back(slope, kernel, ctx.half) if by_x else None,
            own_convolution(x, kernel, ctx.half) if by_slope else None,
            None,
            None,
        )


def _rounded(half: bool, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return (one.bfloat16(), other.bfloat16()) if half else (one, other)


def _convolved(x: Tensor, kernel: Tensor) -> Tensor:
    n, outputs, inputs, size, _ = kernel.shape
    if _by_columns(x):
        found = torch.bmm(kernel.reshape(n, outputs, -1), _columns(x, size))
    else:
        wide, each = x.reshape(1, n * inputs, *x.shape[2:]), kernel.flatten(0, 1)
        found = nn.functional.conv2d(wide, each, padding=size // 2, groups=n)
    return found.view(n, outputs, *x.shape[2:])


def _returned(slope: Tensor, kernel: Tensor) -> Tensor:
    n, _, inputs, size, _ = kernel.shape
    if _by_columns(slope):
        return _convolved(slope, kernel.transpose(1, 2).flip(3, 4))
    wide, each = slope.reshape(1, -1, *slope.shape[2:]), kernel.flatten(0, 1)
    found = nn.functional.conv_transpose2d(wide, each, padding=size // 2, groups=n)
    return found.view(n, inputs, *slope.shape[2:])


def _compared(x: Tensor, slope: Tensor, size: int) -> Tensor:
    (n, inputs), outputs = x.shape[:2], slope.shape[1]
    if _by_columns(x):
        found = torch.bmm(slope.flatten(2), _columns(x, size).transpose(1, 2))
    else:
        wide, back = (one.reshape(1, -1, *one.shape[2:]) for one in (x, slope))
        shape = (n * outputs, inputs, size, size)
        found = conv2d_weight(  # type: ignore[no-untyped-call]
            wide, shape, back, padding=size // 2, groups=n
        )
    return found.view(n, outputs, inputs, size, size)


def _by_columns(x: Tensor) -> bool:
    """Whether to spread pictures out for one product of matrices.

    A processor is at its best with a grouped convolution, a GPU with a product.
    """
    return not x.is_cpu


def _columns(x: Tensor, size: int) -> Tensor:
    """(n, c k k, height width) what the kernel sees at each place."""
    n, inputs, height, width = x.shape
    around = nn.functional.pad(x, [size // 2] * 4)
    # One copy of a view; ``nn.functional.unfold`` has a GPU take picture after picture.
    seen = around.unfold(2, size, 1).unfold(3, size, 1).permute(0, 1, 4, 5, 2, 3)
    return seen.reshape(n, inputs * size**2, height * width)
