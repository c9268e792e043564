"""Adding up the time of many short pieces of work, also where a device does it."""

from __future__ import annotations

import time

import torch

__all__ = ["Stopwatch"]


class Stopwatch:
    """The seconds spent inside of its ``with`` blocks.

    On a GPU the work goes on after a call returns. Marks are then laid into its queue and read at
    the end, so that timing a piece does not make the next one wait.

    Examples
    --------
    >>> stopwatch = Stopwatch(torch.device("cpu"))
    >>> for _ in range(3):
    ...     with stopwatch:
    ...         _ = torch.ones(10).sum()
    >>> stopwatch.seconds() > 0
    True
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._spent, self._start = 0.0, 0.0
        self._marks: list[torch.cuda.Event] = []

    def __enter__(self) -> Stopwatch:
        if self.device.type == "cuda":
            self._mark()
        else:
            self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self.device.type == "cuda":
            self._mark()
        else:
            self._spent += time.perf_counter() - self._start

    def seconds(self) -> float:
        """All of them so far."""
        if self._marks:
            torch.cuda.synchronize(self.device)
            pairs = zip(self._marks[::2], self._marks[1::2], strict=True)
            self._spent += sum(start.elapsed_time(end) for start, end in pairs) / 1000
            self._marks = []
        return self._spent

    def _mark(self) -> None:
        mark = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        mark.record(torch.cuda.current_stream(self.device))
        self._marks.append(mark)
