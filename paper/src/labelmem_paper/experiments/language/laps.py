"""Time by parts of the work, where somebody wants it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["Laps"]


class Laps:
    """Adds up seconds by the name of the part; without a device nothing is measured.

    Examples
    --------
    >>> laps = Laps(torch.device("cpu"))
    >>> with laps.part("model"):
    ...     _ = torch.ones(3).sum()
    >>> list(laps.seconds)
    ['model']
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.device = device
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure what happens inside."""
        if self.device is None:
            yield
            return
        self._wait()
        clock = time.perf_counter()
        yield
        self._wait()
        self.seconds[name] += time.perf_counter() - clock

    def _wait(self) -> None:
        """A device works on while Python goes ahead."""
        if self.device is not None and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
