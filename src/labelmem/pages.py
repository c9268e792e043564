"""Large arrays where the processor finds them with fewer look-ups.

A read of many cells is one pass over memory, and on pages of 4 KiB a good part of it goes into
finding the pages. Large ones are asked of the system for pages of its own only: what a program has
used before lies on small ones and stays there.
"""

from __future__ import annotations

import mmap
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["in_large_pages", "room_like", "zeros"]

LARGE = 1 << 22
"""Bytes from which it is worth while."""
_KINDS = {torch.float32: np.float32, torch.float64: np.float64, torch.int16: np.int16}
_ASKED = getattr(mmap, "MADV_HUGEPAGE", None)
"""What large pages are asked for by, where there are any."""


def zeros(shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of zeros; a large one lies on large pages, where the system has them.

    Examples
    --------
    >>> zeros((2, 3), np.int16)
    array([[0, 0, 0],
           [0, 0, 0]], dtype=int16)
    """
    size = prod(shape) * np.dtype(kind).itemsize
    if size < LARGE or _ASKED is None:
        return np.zeros(shape, kind)
    held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        held.madvise(_ASKED)
    except OSError:  # a system without them
        pass
    return np.frombuffer(held, kind).reshape(shape)


def room_like(x: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """A tensor of zeros of another shape, on large pages; None where that is of no use.

    Examples
    --------
    >>> room_like(torch.zeros(2), (3, 4)) is None                  # far too small
    True
    >>> room_like(torch.zeros(2), (1024, 2048)).shape
    torch.Size([1024, 2048])
    """
    kind = _KINDS.get(x.dtype)
    size = x.element_size() * prod(shape)
    if kind is None or size < LARGE or x.device.type != "cpu" or x.requires_grad:
        return None
    return torch.from_numpy(zeros(shape, kind))


def in_large_pages(x: Tensor) -> Tensor:
    """A copy of a large tensor on large pages; any other is given back as it is."""
    room = room_like(x, tuple(x.shape))
    return x if room is None else room.copy_(x)
