"""Where the time of a step goes, part by part: as the specification has it, and as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any
from unittest.mock import patch

from steps import TURN, methods, tokens, usual

from labelmem import LabeledMemory, Stream
from labelmem.fast import plainly
from labelmem.lmn import LMN
from labelmem.models import GRUModel

BEFORE, AFTER = "specification", "as done"
REST = "checks, names, tensors"
PARTS = {
    "the model's forward": (GRUModel, "forward"),
    "read (Eq. 2 and 3)": (LabeledMemory, "read"),
    "softmax, combiner, mixture (Eq. 1, 4 and 5)": (LMN, "combine"),
    "write": (LabeledMemory, "write"),
    "what the combiner remembers": (LMN, "learn"),
}
"""What a part is called, and whose function does it; what one calls of another counts there."""


class Clock:
    """How long each part took in the step that is under way."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._part, self._since = REST, 0.0

    def enter(self, part: str) -> str:
        """A part begins, or goes on; returns the one that was interrupted."""
        now, before = time.thread_time(), self._part
        self.times[before] = self.times.get(before, 0.0) + now - self._since
        self._part, self._since = part, time.thread_time()
        return before

    def step(self, stream: Stream, token: int) -> dict[str, float]:
        """Seconds of all parts of a step."""
        self.times, self._since = dict.fromkeys((*PARTS, REST), 0.0), time.thread_time()
        stream.predict(token)
        stream.observe(token)
        self.enter(REST)
        return self.times

    def inside(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which does a part of the step."""

        @wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            before = self.enter(part)
            try:
                return function(*given, **named)
            finally:
                self.enter(before)

        return timed


@contextmanager
def clocked() -> Iterator[Clock]:
    """A clock that all parts are timed by."""
    clock = Clock()
    with ExitStack() as stack:
        for part, (owner, name) in PARTS.items():
            timed = clock.inside(part, getattr(owner, name))
            stack.enter_context(patch.object(owner, name, timed))
        yield clock


def step_parts(labels: int = 10_000, dim: int = 128, cells: int = 500) -> list[dict[str, object]]:
    """Microseconds of each part of a step, on the average of many; sizes as of whole steps."""
    made, met = methods(GRUModel(labels, dim).eval()), tokens(labels, cells, 120)
    names = [name for name in made if name.startswith("LMN")]
    streams = {(name, way): made[name]().stream() for name in names for way in (BEFORE, AFTER)}
    times: dict[tuple[str, str], list[dict[str, float]]] = {which: [] for which in streams}
    with clocked() as clock:
        for first in range(0, len(met), TURN):
            for (name, way), stream in streams.items():
                with plainly() if way == BEFORE else nullcontext():
                    for token in met[first : first + TURN]:
                        times[name, way].append(clock.step(stream, token))
    return [
        {
            "step": name,
            "way": way,
            "part": part,
            "us": 1e6 * usual([step[part] for step in each[cells:]]),
        }
        for (name, way), each in times.items()
        for part in (*PARTS, REST)
    ]
