"""Streams as a method meets them, beside what the model alone would have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.evaluation import replayed
from labelmem.labels import KnownLabels, LabelSpace
from labelmem.metrics import FLOOR
from labelmem.online import OnlineMethod
from labelmem.recording import lockstep_batches
from labelmem.stopwatch import Stopwatch
from labelmem_paper.experiments.adapt.frozen import FrozenTask, Stream

__all__ = ["Answers", "Met", "meet"]

Floats = npt.NDArray[np.float64]
UNKNOWN = -1
"""The column of a label that a stream never reveals."""


@dataclass(frozen=True, eq=False)
class Answers:
    """How good the predictions of one stream were, judged by the true labels."""

    hit: npt.NDArray[np.bool_]
    """(T,) whether the true label came first."""
    loss: Floats
    """(T,) -log P(true label), in nats, no probability counting as less than ``FLOOR``."""

    @staticmethod
    def of(p: Sequence[float] | Floats, hit: Sequence[bool]) -> Answers:
        """Given the probabilities of the true labels."""
        return Answers(np.array(hit, bool), -np.log(np.maximum(p, FLOOR)))


@dataclass(frozen=True, eq=False)
class Met:
    """One stream, and who said what."""

    truth: npt.NDArray[np.int64]
    """(T,) the true labels."""
    method: Answers
    model: Answers


def meet(
    method: OnlineMethod[Any],
    task: FrozenTask,
    streams: Sequence[Stream],
    stopwatch: Stopwatch | None = None,
) -> list[Met]:
    """Predict every step of every stream, one stream after another, each from the beginning.

    Parameters
    ----------
    method
        Made around the task's head.
    stopwatch
        Times what the method predicts and observes.
    """
    columns = [_columns(method.known, stream) for stream in streams]
    told: list[list[tuple[float, bool]]] = [[] for _ in streams]
    recorded = [(stream.h, stream.y) for stream in streams]
    batches = lockstep_batches(recorded, method.known, 1, method.device, method.dtype)
    for seen in replayed(method, batches, stopwatch):
        (place,) = seen.order
        told[place].append(_told(seen.probs[0], columns[place][seen.t]))
    return [
        Met(stream.truth.numpy(), Answers.of(*zip(*said, strict=True)), _model(task, stream))
        for stream, said in zip(streams, told, strict=True)
    ]


def _columns(known: KnownLabels, stream: Stream) -> list[int]:
    """The columns of the true labels: new ones are numbered as they are first revealed."""
    space = LabelSpace(known)
    for label in stream.y.tolist():
        space.add(label)
    found = [space.find(label) for label in stream.truth.tolist()]
    return [UNKNOWN if column is None else column for column in found]


def _told(probs: Tensor, column: int) -> tuple[float, bool]:
    """P(true label), and whether it came first; a label nobody revealed yet has no column."""
    if not 0 <= column < len(probs):
        return 0.0, False
    return float(probs[column]), int(probs.argmax()) == column


def _model(task: FrozenTask, stream: Stream) -> Answers:
    """What the head alone says; it has no column for a new label."""
    logits = torch.nn.functional.linear(stream.h, task.weight, task.bias)
    known = stream.truth < task.labels
    probs = torch.softmax(logits, dim=1)
    p = probs.gather(1, torch.where(known, stream.truth, 0)[:, None])[:, 0] * known
    return Answers.of(p.double().numpy(), (probs.argmax(1) == stream.truth).tolist())
