"""Work on a GPU recorded as a CUDA graph: replayed with no Python between its operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch.cuda import CUDAGraph

__all__ = ["recorded"]

T = TypeVar("T")


def recorded(warm_up: Callable[[], object], work: Callable[[], T]) -> tuple[CUDAGraph, T]:
    """Record ``work`` without doing it; its replays leave what it finds in the result.

    ``warm_up`` is done before, apart from the recording: libraries set themselves up in their first
    calls.
    """
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        warm_up()
    torch.cuda.current_stream().wait_stream(side)
    graph = CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph, result
