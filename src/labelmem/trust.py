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
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["Awaited", "believed", "constant", "on_trust", "recording"]

_DOUBTS: ContextVar[_Doubts | None] = ContextVar("labelmem_doubts", default=None)


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
    if doubts.asks:
        doubts.answers.append(condition())
    return True


@dataclass
class _Doubts:
    """Answers to what was asked in a recording."""

    asks: bool
    answers: list[Tensor] = field(default_factory=list)


@contextmanager
def on_trust(ask: bool = True) -> Iterator[list[Tensor]]:
    """Inside, conditions are believed; their answers are on the list that this gives.

    ``ask=False`` where all is known to be well: then nothing is even asked.
    """
    doubts = _Doubts(ask)
    before = _DOUBTS.set(doubts)
    try:
        yield doubts.answers
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
    number, device
        How many, and where they are found.

    Examples
    --------
    >>> awaited = Awaited(2, torch.device("cpu"))
    >>> awaited.ask(torch.tensor([False, True]))
    >>> awaited.asked()
    >>> awaited.come()
    [False, True]
    """

    def __init__(self, number: int, device: torch.device) -> None:
        self._device, far = device, device.type == "cuda"
        self._here = torch.empty(number, dtype=torch.bool, pin_memory=far)
        self._moment = torch.cuda.Event() if far else None  # type: ignore[no-untyped-call]

    def ask(self, answers: Tensor) -> None:
        """Send for them. This may be recorded."""
        self._here.copy_(answers, non_blocking=True)

    def asked(self) -> None:
        """They were sent for just now, be it by a recording that is repeated."""
        if self._moment is not None:
            self._moment.record(torch.cuda.current_stream(self._device))

    def come(self) -> list[bool]:
        """What was asked for last."""
        if self._moment is not None:
            self._moment.synchronize()
        found: list[bool] = self._here.tolist()
        return found
