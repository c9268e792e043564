"""The ways to take a step, and how each is switched on: the only file here that knows.

To have a new way judged, add a line to ``WAYS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

from conformance.capture import captured
from conformance.users import BatchUsers, Guarded, SingleUsers, Users
from labelmem import Adapter
from labelmem.fast import plainly
from labelmem.lockstep import state as lockstep_state
from labelmem.lockstep.recorded import RecordedLockstep

__all__ = ["BATCH_WAYS", "REFERENCE", "STREAM_WAYS", "WAYS", "Way"]

Context = Callable[[], AbstractContextManager[Any]]
_PACKAGES = ("torch.nn.", "labelmem.", "toys", "conformance.")


@contextmanager
def in_turns() -> Iterator[None]:
    """Each call takes another way than the one before, in a pattern that meets all pairs."""
    with next(_TURNS)():
        yield


_TURNS = cycle([plainly, nullcontext, nullcontext, plainly, plainly, nullcontext, plainly])


@contextmanager
def recording_on_cpu() -> Iterator[None]:
    """Steps are recorded as they are on a GPU, as lists of tensor operations."""
    with (
        patch.object(RecordedLockstep, "captured", captured),
        patch.object(lockstep_state, "DEVICES", ("cpu",)),
        patch.object(lockstep_state, "_OWN", _PACKAGES),
    ):
        yield


def _can_record(build: Callable[[], Adapter]) -> bool:
    with recording_on_cpu():
        adapter = build()
        return adapter.places(adapter.initial_state(2)) is not None


def _always(build: Callable[[], Adapter]) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class Way:
    """One way to take steps."""

    name: str
    context: Context = nullcontext
    """What every call happens inside of."""
    batch: Callable[[Adapter, int], Any] | None = None
    """Makes a batch for so many users; None gives each a stream of his own."""
    rows: int | None = None
    """The users of a batch; None puts all of them into one."""
    takes: Callable[[Callable[[], Adapter]], bool] = _always
    """Whether it can take the steps of the adapters that a function makes."""
    exact: bool = True
    """Whether the same calls give the same bits."""
    follows: bool = True
    """Whether it notices that weights have changed; that recordings do not is a known fault."""
    module: str = "labelmem"
    """The module that does the work, where the library takes this way."""
    options: dict[str, Any] = field(default_factory=dict)
    """What an adapter is told, so that its streams go this way."""

    def __str__(self) -> str:
        return self.name

    def users(self, adapter: Adapter, n: int) -> Users:
        """``n`` new users of one adapter."""
        if self.batch is None:
            return SingleUsers([self.stream(adapter) for _ in range(n)])
        rows = self.rows or n
        with self.context():
            batches = [self.batch(adapter, rows) for _ in range(n // rows)]
        return BatchUsers([Guarded(batch, self.context) for batch in batches])  # type: ignore[misc]

    def stream(self, adapter: Adapter) -> Any:
        """One new user's stream."""
        with self.context():
            return Guarded(adapter.stream(), self.context)

    def load_stream(self, adapter: Adapter, path: Path) -> Any:
        """A user's stream from a file."""
        with self.context():
            return Guarded(adapter.load_stream(path), self.context)


REFERENCE = Way("reference", options={"engine": "reference"})
STREAM_WAYS = [
    REFERENCE,
    Way("default", module="labelmem.engines.numba"),
    Way("in turns", in_turns, exact=False),
]
WAYS = [
    *STREAM_WAYS,
    Way("batch", batch=Adapter.streams, module="labelmem.engines.numba.many"),
    Way("reference batch", batch=Adapter.streams, options={"engine": "reference"}),
    Way("batch, in turns", in_turns, Adapter.streams, exact=False),
    Way(
        "recorded batch",
        recording_on_cpu,
        Adapter.streams,
        takes=_can_record,
        follows=False,
        module="labelmem.lockstep.recorded",
        options={"engine": "reference"},  # kernels of the CPU are no tensor operations
    ),
    Way("batches of one", batch=Adapter.streams, rows=1, module="labelmem.engines.numba"),
    Way("batches of one, in turns", in_turns, Adapter.streams, rows=1, exact=False),
]
BATCH_WAYS = [way for way in WAYS if way.batch]
