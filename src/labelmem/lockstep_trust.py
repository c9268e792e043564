"""Checks whose answer is not waited for while a step is being recorded.

A recorded step is a list of work for a device: nothing in it can wait for an answer, such as
whether all values are finite. Such questions are asked through :func:`believed`. Ordinarily it
waits; in a recording it takes the answer to be yes and puts the question on a list, which whoever
repeats the recording looks at afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["believed", "constant", "on_trust", "recording"]

_DOUBTS: ContextVar[list[Tensor] | None] = ContextVar("labelmem_doubts", default=None)


def recording() -> bool:
    """Whether what runs now is being recorded."""
    return _DOUBTS.get() is not None


def believed(condition: Tensor) -> bool:
    """Whether a condition, one boolean on any device, holds; in a recording it is taken to.

    Examples
    --------
    >>> believed(torch.tensor(False))
    False
    >>> with on_trust() as doubts:
    ...     believed(torch.tensor(False))
    True
    >>> doubts
    [tensor(False)]
    """
    doubts = _DOUBTS.get()
    if doubts is None:
        return bool(condition)
    doubts.append(condition)
    return True


@contextmanager
def on_trust() -> Iterator[list[Tensor]]:
    """Inside, conditions are believed; they are on the list that this gives."""
    doubts: list[Tensor] = []
    before = _DOUBTS.set(doubts)
    try:
        yield doubts
    finally:
        _DOUBTS.reset(before)


@lru_cache(maxsize=64)
def constant(values: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """A small tensor of numbers that never change, made once: copying it would wait for the device.

    Examples
    --------
    >>> constant((0.5, 2.0), torch.device("cpu"), torch.float32)
    tensor([0.5000, 2.0000])
    """
    with torch.inference_mode(False):  # whoever comes later may want a gradient
        return torch.tensor(values, device=device, dtype=dtype)
