"""When a fused kernel is taken: 32 bits, on a GPU, where Triton is installed.

The combiners and ``functional.py`` are the specification. The modules ``kernels.*`` say the same of
many streams at once in one pass over the bytes; they are imported only where they are used, since
Triton is no dependency of this package (torch for GPUs brings it).
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from labelmem.fast import allowed

__all__ = ["FUSED_MOST", "fused", "fused_on"]

FUSED_MOST = 4096
"""The most positions, and the longest vectors, that one program of a kernel holds."""


@cache
def _devices() -> tuple[str, ...]:
    """Where kernels run; with Triton's interpreter, which is for tests, on a CPU too."""
    if find_spec("triton") is None:
        return ()
    return ("cuda", "cpu") if os.environ.get("TRITON_INTERPRET") == "1" else ("cuda",)


def fused(*tensors: Tensor) -> bool:
    """Whether work on these tensors is done by a fused kernel.

    Examples
    --------
    >>> fused(torch.zeros(2, 3, dtype=torch.float64))
    False
    """
    return all(x.dtype == torch.float32 and fused_on(x.device) for x in tensors)


def fused_on(device: torch.device) -> bool:
    """Whether kernels run there, and short ways are taken at all.

    Examples
    --------
    >>> fused_on(torch.device("meta"))
    False
    """
    return device.type in _devices() and allowed()
