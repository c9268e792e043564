"""What everything that adapts has in common: steps, and the streams made of them.

The adapter is one such method; the baselines are others. Streams, batches, late labels, saving,
evaluation and the checks are written once, against this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from labelmem.batch import StreamBatch
from labelmem.errors import UnsupportedError
from labelmem.stepping import Step, Stepping
from labelmem.stream import Stream

__all__ = ["OnlineMethod", "Recorded", "Step"]

S = TypeVar("S")

Recorded = tuple[Any, Sequence[Any] | Tensor]
"""A recorded stream: its inputs, first dimension time, and as many labels."""


class OnlineMethod(Stepping[S]):
    """A classifier that learns from every revealed label of every stream.

    A subclass says how it steps (see :class:`labelmem.stepping.Stepping`); streams come for free.
    """

    def fit(self, sequences: Iterable[Recorded], **options: Any) -> Any:
        """Learn what can be learned from recorded streams; most methods have nothing to learn."""
        raise UnsupportedError(f"{self.name} has nothing to fit")

    def stream(self) -> Stream:
        """Start one user's stream."""
        return Stream(self)

    def streams(self, n: int) -> StreamBatch:
        """Start ``n`` streams that advance in lockstep."""
        return StreamBatch(self, n)

    def load_stream(self, path: str | Path) -> Stream:
        """Continue a stream that was saved, bit for bit."""
        return Stream.load(self, path)
