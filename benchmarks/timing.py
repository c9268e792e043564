"""How things are timed: parts that are compared take turns, and the fastest of many counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def take_turns(
    parts: Mapping[str, Work], calls: int, rounds: int = 15, warm: bool = True
) -> dict[str, float]:
    """Microseconds of processor time per call of each part: the least of all rounds.

    Whatever else the computer does can only add to a time, and does not add alike to work that
    waits for memory and to work that does not. The time is that of the thread: it does not run
    while others have the processor.
    """
    times: dict[str, list[float]] = {name: [] for name in parts}
    for turn in range(rounds + warm):
        for name, work in parts.items():
            start = time.thread_time()
            for _ in range(calls):
                work()
            if turn or not warm:
                times[name].append((time.thread_time() - start) / calls)
    return {name: 1e6 * min(each) for name, each in times.items()}
