"""How many operations a recorded lockstep consists of, counted without a GPU: gpu.py --count.

On a device each takes a microsecond or two and a pause, however little it does. With
``TRITON_INTERPRET=1`` fused kernels are taken and count as one; without it they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from labelmem import Adapter
from labelmem.engines.triton.runtime import INTERPRETED
from labelmem.lockstep import state as lockstep_state
from labelmem.lockstep.recorded import RecordedLockstep

_NO_WORK = ("aten.empty", "aten.new_empty", "aten.detach")


class Operations(TorchDispatchMode):
    """The names of all that works on bytes: not views, nor room that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view and not str(func).startswith(_NO_WORK):
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Unplayed:
    """A recording that is not repeated."""

    def replay(self) -> None:
        """Nothing."""


def counted(adapter: Adapter, bench: Any) -> dict[str, int]:
    """Operations of a prediction, of what is learned, and around."""
    with _recordings() as made:
        batch = adapter.streams(bench.n)
        bench.run(batch, bench.tokens(4))  # the first is taken plainly
        y = bench.tokens(1)[0]
        with _operations() as around:
            batch.predict(y)
            batch.observe_ids(y)
    parts = dict(zip(("predict", "observe"), made, strict=False))
    return {part: len(names) for part, names in (parts | {"around": around}).items()}


@contextmanager
def _recordings() -> Iterator[list[list[str]]]:
    """Let steps be recorded on a CPU; the operations of each recording."""
    made: list[list[str]] = []

    def captured(self: RecordedLockstep, work: Callable[[], Any]) -> tuple[Unplayed, Any]:
        held = self.places.tensors()
        before = {name: x.clone() for name, x in held.items()}
        with torch.no_grad(), _operations() as names:
            found = work()
        for name, x in held.items():  # recording does nothing
            x.copy_(before[name])
        made.append(names)
        return Unplayed(), found

    with patch.object(RecordedLockstep, "captured", captured):
        with patch.object(lockstep_state, "DEVICES", ("cpu",)):
            yield made


@contextmanager
def _operations() -> Iterator[list[str]]:
    """The operations inside; a kernel counts as one, whatever its interpreter does."""
    with Operations() as counting:
        if not INTERPRETED:
            yield counting.names
            return
        from triton.runtime.interpreter import GridExecutor

        run = GridExecutor.__call__

        def one(self: Any, *args: Any, **kwargs: Any) -> Any:
            counting.names.append(self.fn.__name__)
            with _disable_current_modes():
                return run(self, *args, **kwargs)

        with patch.object(GridExecutor, "__call__", one):
            yield counting.names
