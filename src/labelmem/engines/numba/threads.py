"""Kernels over ranges of streams, side by side on as many threads as torch uses."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import torch

__all__ = ["spread"]

_LEAST = 1 << 16
"""Numbers to look at below which another thread takes longer to wake than to do its share."""


def spread(kernel: Callable[..., None], streams: int, numbers: int, *given: Any) -> None:
    """Call ``kernel(first, end, *given)`` with ranges that together are all streams.

    ``numbers`` is how many numbers it looks at for one stream. Streams know nothing of each other,
    so the results are the same for any number of threads.
    """
    parts = max(1, min(torch.get_num_threads(), streams, streams * numbers // _LEAST))
    ranges = list(pairwise(streams * part // parts for part in range(parts + 1)))
    others = [_pool(os.getpid()).submit(kernel, *each, *given) for each in ranges[1:]]
    kernel(*ranges[0], *given)
    for other in others:
        other.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; those of a parent do not live on after a fork."""
    return ThreadPoolExecutor(thread_name_prefix="labelmem")
