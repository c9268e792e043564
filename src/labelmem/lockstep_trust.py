"""Checks whose answer is not waited for while a step is being recorded.

A recorded step is a list of work for a device: nothing in it can wait for an answer, such as
whether all values are finite. Such questions are asked through :func:`believed`. Ordinarily it
waits; in a recording it takes the answer to be yes and puts the question on a list, which whoever
repeats the recording looks at afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["Awaited", "believed", "constant", "on_trust", "recording"]

_DOUBTS: ContextVar[list[Tensor] | None] = ContextVar("labelmem_doubts", default=None)


def recording() -> bool:
    """Whether what runs now is being recorded."""
    return _DOUBTS.get() is not None


def believed(condition: Callable[[], Tensor]) -> bool:
    """Whether a condition, one boolean on any device, holds; in a recording it is taken to.

    Examples
    --------
    >>> believed(lambda: torch.tensor(False))
    False
    >>> with on_trust() as doubts:
    ...     believed(lambda: torch.tensor(False))
    True
    >>> doubts
    [tensor(False)]
    """
    doubts = _DOUBTS.get()
    if doubts is None:
        return bool(condition())
    if not isinstance(doubts, _Unasked):
        doubts.append(condition())
    return True


class _Unasked(list[Tensor]):
    """No list: nothing is put on it."""


@contextmanager
def on_trust(ask: bool = True) -> Iterator[list[Tensor]]:
    """Inside, conditions are believed; they are on the list that this gives.

    Parameters
    ----------
    ask
        False where all is known to be well: then nothing is even asked.
    """
    doubts: list[Tensor] = [] if ask else _Unasked()
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


class Awaited:
    """A few booleans on their way from a device: asked for now, waited for when they are needed.

    Parameters
    ----------
    like
        Booleans of the form that will be asked for.

    Examples
    --------
    >>> awaited = Awaited(torch.tensor([True, False]))
    >>> awaited.ask(torch.tensor([False, True]))
    >>> awaited.answers()
    [False, True]
    """

    def __init__(self, like: Tensor) -> None:
        far = like.device.type == "cuda"
        self._here = torch.empty(like.shape, dtype=like.dtype, pin_memory=far)
        self._come = torch.cuda.Event() if far else None  # type: ignore[no-untyped-call]

    def ask(self, answers: Tensor) -> None:
        """Send for them; they may change on the device afterwards."""
        self._here.copy_(answers, non_blocking=True)
        if self._come is not None:
            self._come.record(torch.cuda.current_stream(answers.device))

    def answers(self) -> list[bool]:
        """What was asked for last."""
        if self._come is not None:
            self._come.synchronize()
        found: list[bool] = self._here.tolist()
        return found
