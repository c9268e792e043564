"""Recorded steps without a GPU: a list of tensor operations in the place of a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from labelmem.trees import leaves


class OperationList(TorchDispatchMode):
    """Operations that can be repeated, into the tensors that they gave the first time.

    Like a graph on a device it runs no Python of the library, always works on the same bytes, and
    cannot wait for a value.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self.times = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default, "waits for the device"
        found = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, found))
        return found

    @torch.no_grad()
    def replay(self) -> None:
        self.times += 1
        for func, args, kwargs, first in self.operations:
            again = func(*args, **kwargs)
            for mine, new in zip(leaves(first), leaves(again), strict=True):
                if mine.data_ptr() != new.data_ptr():
                    mine.copy_(new)


def captured(lockstep: Any, work: Callable[[], Any]) -> tuple[OperationList, Any]:
    """Stands in for ``RecordedLockstep.captured``; the state is left as it was."""
    held = lockstep.places.tensors()
    before = {name: x.clone() for name, x in held.items()}
    with torch.no_grad(), OperationList() as operations:
        found = work()
    for name, x in held.items():
        x.copy_(before[name])
    return operations, found
