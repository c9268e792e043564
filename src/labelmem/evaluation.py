"""Replaying recorded streams through any online method, and what that cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from labelmem.batch import StreamBatch
from labelmem.metrics import MetricsResult, StreamMetrics
from labelmem.online import OnlineMethod, Recorded
from labelmem.progress import progress_bar
from labelmem.recording import Lockstep, lockstep_batches
from labelmem.scoring import Worth
from labelmem.stepping import Step
from labelmem.stopwatch import Stopwatch

__all__ = ["Evaluation", "Watch", "evaluate", "replayed"]

REPORTED = 32
"""Progress is told once in so many steps: the running figure must be fetched from the device."""
_FIRST = 4  # steps in which everything that is done once has been done


@dataclass(frozen=True)
class Watch:
    """One lockstep, shown to a watcher after the prediction and before the labels are learned."""

    t: int
    batch: StreamBatch
    step: Step
    y: Tensor
    """(n,) the true label ids."""
    mask: Tensor
    """(n,) which streams are still running."""
    order: tuple[int, ...]
    """Which of the given sequences the rows are."""
    running: int
    """How many streams are still running."""

    @property
    def probs(self) -> Tensor:
        """(n, W)."""
        return self.step.probs

    @cached_property
    def worth(self) -> Worth:
        """What the prediction is worth."""
        return self.step.worth(self.y, self.batch.widths)


@dataclass(frozen=True)
class Evaluation:
    """Figures, and microseconds per token for predicting and observing, the model included.

    What a process does once is no part of them where streams go one by one: there the first steps,
    which load or compile kernels, are taken twice, and the second time counts.
    """

    metrics: StreamMetrics
    us_per_token: float

    def result(self) -> MetricsResult:
        """The figures with their intervals."""
        return self.metrics.result()


def evaluate(
    method: OnlineMethod[Any],
    sequences: Iterable[Recorded],
    batch_size: int = 64,
    watch: Callable[[Watch], None] | None = None,
    show: bool | None = None,
) -> Evaluation:
    """Predict every label of every stream before revealing it.

    Accuracy is also split into labels the method was trained on (``seen``) and others (``new``).

    Parameters
    ----------
    sequences
        Pairs of inputs and labels.
    batch_size
        How many streams run in lockstep; it changes the speed, not the figures.
    watch
        Called at every step, e.g. to trace theta or the memory's growth.

    Examples
    --------
    >>> import torch
    >>> from labelmem import Adapter
    >>> adapter = Adapter(torch.nn.Linear(2, 2))
    >>> done = evaluate(adapter, [(torch.randn(5, 2), [0, 1, 2, 1, 2])])
    >>> done.result().tokens
    5
    """
    metrics, device = StreamMetrics(), method.device
    known, running = len(method.known), 0
    batches = list(lockstep_batches(sequences, method.known, batch_size, device, method.dtype))
    tokens = sum(int(batch.mask.sum()) for batch in batches)
    stopwatch = Stopwatch(device)
    with progress_bar(method.name, tokens, show) as report:
        for seen in replayed(method, batches, stopwatch):
            if watch is not None:
                watch(seen)
            new = seen.y >= known
            groups = {"new": new, "seen": ~new}
            metrics.add(seen.worth.figures, seen.mask, seen.order, groups)
            running += seen.running
            if seen.t % REPORTED == REPORTED - 1:
                report(running, note=f"{metrics.running:.3f} nats")
                running = 0
        report(running, note=f"{metrics.running:.3f} nats")
    return Evaluation(metrics, 1e6 * stopwatch.seconds() / tokens)


def replayed(
    method: OnlineMethod[Any], batches: Iterable[Lockstep], stopwatch: Stopwatch | None = None
) -> Iterator[Watch]:
    """Predict every step of recorded streams, and learn its labels before the next step.

    Parameters
    ----------
    batches
        As :func:`labelmem.recording.lockstep_batches` gives them.
    stopwatch
        Times what is predicted and observed, and nothing else.

    Examples
    --------
    >>> import torch
    >>> from labelmem import Adapter
    >>> adapter = Adapter(torch.nn.Linear(2, 2))
    >>> recorded = [(torch.randn(5, 2), [0, 1, 2, 1, 2])]
    >>> batches = lockstep_batches(recorded, adapter.known, 8, adapter.device, adapter.dtype)
    >>> [seen.probs.shape[1] for seen in replayed(adapter, batches)]
    [2, 2, 2, 3, 3]
    """
    timed = stopwatch or Stopwatch(method.device)
    warm = False
    for recorded in batches:
        if recorded.streams == 1 and not warm:  # what is done once is done before time is taken
            _warm_up(method, recorded)
        warm = True
        batch = method.streams(recorded.streams)
        # Asked for once: every answer from a device has to be waited for.
        for t, running in enumerate(recorded.mask.sum(0).tolist()):
            y, mask, x = recorded.y[:, t], recorded.mask[:, t], recorded.at(t)
            with timed:
                seen = Watch(t, batch, batch.look(x), y, mask, recorded.order, running)
                if stopwatch is not None and seen.step.lazy:  # it takes the place of rows
                    _ = seen.worth
            yield seen
            with timed:
                batch.observe_ids(y, None if running == recorded.streams else mask)


def _warm_up(method: OnlineMethod[Any], recorded: Lockstep) -> None:
    """Let a stream that nobody hears of take some steps."""
    batch = method.streams(1)
    for t in range(min(_FIRST, recorded.y.shape[1])):
        batch.predict(recorded.at(t))
        batch.observe_ids(recorded.y[:, t])
