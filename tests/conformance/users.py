"""A few users side by side, whichever public object runs their streams."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from labelmem import Prediction, Stream, StreamBatch


class Output(NamedTuple):
    """What one user is answered in one step; the tensors are aligned with the labels."""

    labels: list[Any]
    probs: Tensor
    theta: Tensor | None
    model_probs: Tensor | None
    memory_probs: Tensor | None


def output_of(p: Prediction) -> Output:
    return Output(p.labels, p.probs, p.theta, p.model_probs, p.memory_probs)


class Users(Protocol):
    """``n`` users; inputs and labels are lists with one entry per user."""

    def predict(self, X: Sequence[Tensor]) -> list[Output]: ...

    def observe(self, Y: Sequence[Any], mask: Sequence[bool] | None = None) -> None: ...

    def reset(self) -> None: ...


class SingleUsers:
    """Every user has a stream of his own; the streams take turns."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = streams

    def predict(self, X: Sequence[Tensor]) -> list[Output]:
        return [output_of(s.predict(x)) for s, x in zip(self.streams, X, strict=True)]

    def observe(self, Y: Sequence[Any], mask: Sequence[bool] | None = None) -> None:
        for i, (stream, y) in enumerate(zip(self.streams, Y, strict=True)):
            if mask is None or mask[i]:
                stream.observe(y)

    def reset(self) -> None:
        for stream in self.streams:
            stream.reset()


class BatchUsers:
    """The users are the rows of batches, usually of a single one."""

    def __init__(self, batches: Sequence[StreamBatch]) -> None:
        self.batches = batches

    def predict(self, X: Sequence[Tensor]) -> list[Output]:
        rows = torch.stack(list(X)).split([len(batch) for batch in self.batches])
        return [out for b, x in zip(self.batches, rows, strict=True) for out in _rows(b, x)]

    def observe(self, Y: Sequence[Any], mask: Sequence[bool] | None = None) -> None:
        first = 0
        for batch in self.batches:
            rows = slice(first, first + len(batch))
            batch.observe(Y[rows], None if mask is None else mask[rows])
            first += len(batch)

    def reset(self) -> None:
        for batch in self.batches:
            batch.reset()


def _rows(batch: StreamBatch, X: Tensor) -> list[Output]:
    """Predict with a batch, and cut each user's labels out of its columns."""
    probs, step = batch.predict(X), batch.last
    assert step is not None and probs.shape == (len(batch), batch.width)
    outputs = []
    for n in range(len(batch)):
        labels = batch.labels(n)
        assert not probs[n, len(labels) :].any(), "another user's labels have a probability"
        parts = (probs, step.theta, step.model_probs, step.memory_probs)
        outputs.append(Output(labels, *(_cut(part, n, len(labels)) for part in parts)))  # type: ignore[arg-type]
    return outputs


def _cut(x: Tensor | None, row: int, width: int) -> Tensor | None:
    return None if x is None else x[row, :width].clone()


class Guarded:
    """A stream or a batch whose every call happens inside a context of its way."""

    def __init__(self, target: Any, context: Any) -> None:
        self._target, self._context = target, context

    def __getattr__(self, name: str) -> Any:
        with self._enter():
            value = getattr(self._target, name)
        return self._call(value) if callable(value) else value

    def __len__(self) -> int:
        return len(self._target)

    def copied(self, copy: Any) -> Guarded:
        """The same way around a copy of the stream; ``copy`` makes it."""
        return Guarded(copy(self._target), self._context)

    def _enter(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self._context()
        return context

    def _call(self, function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            with self._enter():
                return function(*args, **options)

        return call
