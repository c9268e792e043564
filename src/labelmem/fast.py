"""When compiled kernels take the place of the plain steps, and how they see tensors.

``functional.py`` and the combiners are the reference; they work for any number of streams on any
device. Streams on a CPU, in 32 bits, without gradients, go through the kernels in
``engines/numba/`` where numba is installed: one, or in most forms many side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Array", "addressable", "allowed", "alone", "array", "bounded", "compiled", "plainly"]
__all__ += ["row", "tensor", "visible"]

Array = NDArray[Any]

_ON: ContextVar[bool] = ContextVar("labelmem_fast", default=True)


@contextmanager
def plainly() -> Iterator[None]:
    """Use neither compiled nor fused kernels inside: everything runs as the reference has it.

    Examples
    --------
    >>> with plainly():
    ...     compiled(narrow=True)
    False
    """
    before = _ON.set(False)
    try:
        yield
    finally:
        _ON.reset(before)


def allowed() -> bool:
    """Whether kernels may be used at all; not inside of :func:`plainly`."""
    return _ON.get()


def compiled(narrow: bool) -> bool:
    """Whether compiled kernels may be used for numbers that have 32 bits, if ``narrow``."""
    return narrow and _ON.get() and _has_numba()


@cache
def _has_numba() -> bool:
    """Whether numba is installed and fits this numpy; only now is it imported."""
    return (
        find_spec("numba") is not None and import_module("labelmem.engines.numba").numba is not None
    )


def alone(h: Tensor) -> bool:
    """Whether compiled kernels may take ``h`` (n, d): one stream, on a CPU, without a gradient.

    Examples
    --------
    >>> alone(torch.zeros(2, 2)), alone(torch.zeros(1, 2, dtype=torch.float64))
    (False, False)
    """
    one = h.shape[0] == 1 and h.is_cpu and not h.requires_grad
    return one and compiled(h.dtype is torch.float32)


def addressable(x: Tensor) -> bool:
    """Whether kernels may be given the address of ``x``, just now.

    Its numbers have 32 bits and are contiguous on the CPU, no operation is pending on them, and no
    gradient goes through them. That there are kernels is known already.

    Examples
    --------
    >>> x = torch.zeros(2, 2)
    >>> addressable(x), addressable(x.T[:1]), addressable(x.double())
    (True, False, False)
    """
    return (
        type(x) is Tensor
        and x.dtype is torch.float32
        and x.is_cpu
        and not x.requires_grad
        and x.is_contiguous()
        and not x.is_neg()
        and _ON.get()
    )


def visible(*tensors: Tensor) -> bool:
    """Whether numpy can look at the bytes of all of these.

    It cannot inside of :func:`torch.func.vmap`, where a tensor stands for many, nor while a model
    is being compiled, where it stands for none yet.

    Examples
    --------
    >>> visible(torch.zeros(2))
    True
    >>> _ = torch.func.vmap(lambda x: print(visible(x)) or x)(torch.zeros(2))
    False
    """
    if torch.compiler.is_compiling():
        return False
    try:
        for x in tensors:
            x.data_ptr()
    except RuntimeError:
        return False
    return True


def array(x: Tensor) -> Array:
    """The same bytes, as numpy sees them."""
    seen: Array = x.numpy() if not x.requires_grad else x.detach().numpy()
    return seen


def row(x: Tensor) -> Array:
    """One stream's row of ``x`` (1, …), contiguous as kernels want it."""
    return np.ascontiguousarray(array(x)[0])


def tensor(x: Array) -> Tensor:
    """The same bytes as a tensor of one stream: the stream dimension is put in front."""
    return torch.from_numpy(x[None])


def bounded(x: Tensor) -> bool:
    """Whether the squares of all numbers have a finite sum; then none is NaN or infinite.

    Examples
    --------
    >>> bounded(torch.tensor([[1.0, -2.0]])), bounded(torch.tensor([[1.0, -torch.inf]]))
    (True, False)
    """
    flat = array(x).reshape(-1)
    return math.isfinite(flat.dot(flat))  # unlike a sum, it does not warn
