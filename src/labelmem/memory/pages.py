"""Large tensors where the processor finds them with fewer look-ups.

A read of many cells is one pass over memory, and on pages of 4 KiB a good part of it goes into
finding the pages. numpy asks the system for large pages where an array is large; torch does not.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["in_large_pages", "room_like"]

LARGE = 1 << 22
"""Bytes from which numpy asks for large pages."""
_KINDS = {torch.float32: np.float32, torch.float64: np.float64, torch.int16: np.int16}


def room_like(x: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """An empty tensor of another shape, on large pages; None where that is of no use.

    Examples
    --------
    >>> room_like(torch.zeros(2), (3, 4)) is None                  # far too small
    True
    >>> room_like(torch.zeros(2), (1024, 2048)).shape
    torch.Size([1024, 2048])
    """
    kind = _KINDS.get(x.dtype)
    size = x.element_size() * int(np.prod(shape))
    if kind is None or size < LARGE or x.device.type != "cpu" or x.requires_grad:
        return None
    return torch.from_numpy(np.empty(shape, kind))


def in_large_pages(x: Tensor) -> Tensor:
    """A copy of a large tensor on large pages; any other is given back as it is."""
    room = room_like(x, tuple(x.shape))
    return x if room is None else room.copy_(x)
