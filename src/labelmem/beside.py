"""Work that a device does beside other work, while a step is being recorded.

A recorded step is a graph: whatever does not need a result may be done at the same time. Ordinarily
nothing is gained by that, since work is handed to a device piece by piece, and all is done in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from labelmem.trust import recording

__all__ = ["Beside", "called"]

T = TypeVar("T")


@dataclass
class _Call:
    """When a layer was called, and with what."""

    given: Tensor | None = None
    moment: torch.cuda.Event | None = None


_LATEST: ContextVar[_Call | None] = ContextVar("labelmem_call", default=None)


def _branches(device: torch.device) -> bool:
    """Whether work for this device can be a branch of its own."""
    return device.type == "cuda" and recording()


def called(module: nn.Module | None, device: torch.device) -> AbstractContextManager[None]:
    """Inside, it is known when the module was called last: what it was given was there then.

    Examples
    --------
    >>> layer = nn.Linear(2, 3)
    >>> with called(layer, torch.device("cpu")):
    ...     layer(torch.zeros(1, 2)).shape
    torch.Size([1, 3])
    """
    return nullcontext() if module is None or not _branches(device) else _noted(module, device)


@contextmanager
def _noted(module: nn.Module, device: torch.device) -> Iterator[None]:
    call = _Call()

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        call.given, call.moment = inputs[0], torch.cuda.Event()  # type: ignore[no-untyped-call]
        call.moment.record(torch.cuda.current_stream(device))

    hook, before = module.register_forward_pre_hook(note), _LATEST.set(call)
    try:
        yield
    finally:
        _LATEST.reset(before)
        hook.remove()


class Beside(Generic[T]):
    """Some work, begun now, whose result is waited for when it is asked for.

    In a recording for a GPU it is a branch of its own, which must be asked for before the recording
    ends. Anywhere else the work is done at once.

    Parameters
    ----------
    work
        What it looks at must stay alive until the result is asked for.
    device
        Where it is done.
    given
        All that the work looks at of what this recording finds. It begins as soon as that is there,
        where :func:`called` knows when that was; else after all that was begun before it.

    Examples
    --------
    >>> beside = Beside(lambda: 2 + 3, torch.device("cpu"))
    >>> beside.result()
    5
    """

    def __init__(
        self, work: Callable[[], T], device: torch.device, given: Tensor | None = None
    ) -> None:
        self._stream: torch.cuda.Stream | None = None
        if not _branches(device):
            self._found = work()
            return
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        call = _LATEST.get()
        if call is not None and call.moment is not None and call.given is given:
            self._stream.wait_event(call.moment)
        else:
            self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            self._found = work()

    def result(self) -> T:
        """What the work came to; all that follows comes after it."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        return self._found
