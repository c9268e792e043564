"""Replaying recorded streams through any online method, and what that cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from labelmem.batch import StreamBatch
from labelmem.metrics import MetricsResult, StreamMetrics
from labelmem.one_stream import one_stream
from labelmem.online import OnlineMethod, Recorded
from labelmem.progress import progress_bar
from labelmem.recording import Lockstep, lockstep_batches
from labelmem.stopwatch import Stopwatch

__all__ = ["Evaluation", "Watch", "evaluate"]

REPORTED = 32
"""Progress is told once in so many steps: the running figure must be fetched from the device."""
_FIRST = 4  # steps in which everything that is done once has been done


@dataclass(frozen=True)
class Watch:
    """One lockstep, shown to a watcher after the prediction and before the labels are learned."""

    t: int
    batch: StreamBatch
    probs: Tensor
    """(n, W)."""
    y: Tensor
    """(n,) the true label ids."""
    mask: Tensor
    """(n,) which streams are still running."""
    order: tuple[int, ...]
    """Which of the given sequences the rows are."""


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
    metrics = StreamMetrics()
    batches = list(
        lockstep_batches(sequences, method.known, batch_size, method.device, method.dtype)
    )
    tokens = sum(int(batch.mask.sum()) for batch in batches)
    watches = []
    with progress_bar(method.name, tokens, show) as report:
        if batches[0].streams == 1:
            _warm_up(method, batches[0])
        for recorded in batches:
            running = _Lockstepper(method, recorded, metrics, watch)
            # Asked for once: every answer from a device has to be waited for.
            done = recorded.mask.sum(0).tolist()
            for t, count in enumerate(done):
                running.step(t, whole=count == recorded.streams)
                if t % REPORTED == REPORTED - 1 or t == len(done) - 1:
                    past = sum(done[t - t % REPORTED : t + 1])
                    report(past, note=f"{metrics.running:.3f} nats")
            watches.append(running.stopwatch)
    seconds = sum(stopwatch.seconds() for stopwatch in watches)
    return Evaluation(metrics, 1e6 * seconds / tokens)


def _warm_up(method: OnlineMethod[Any], recorded: Lockstep) -> None:
    """Let a stream that nobody hears of take some steps."""
    running = _Lockstepper(method, recorded, StreamMetrics(), None)
    for t in range(min(_FIRST, recorded.y.shape[1])):
        running.step(t, whole=True)


class _Lockstepper:
    def __init__(
        self,
        method: OnlineMethod[Any],
        recorded: Lockstep,
        metrics: StreamMetrics,
        watch: Callable[[Watch], None] | None,
    ) -> None:
        n = recorded.streams
        self.batch = one_stream(method) if n == 1 else method.streams(n)
        self.recorded, self.metrics, self.watch = recorded, metrics, watch
        self.known = len(method.known)
        self.stopwatch = Stopwatch(recorded.y.device)

    def step(self, t: int, whole: bool) -> None:
        """One predict and observe, both timed; ``whole`` if all streams are still running."""
        recorded = self.recorded
        y, mask, x = recorded.y[:, t], recorded.mask[:, t], recorded.at(t)
        with self.stopwatch:
            probs = self.batch.predict(x)
        if self.watch is not None:
            self.watch(Watch(t, self.batch, probs, y, mask, recorded.order))
        new = y >= self.known
        groups = {"new": new, "seen": ~new}
        self.metrics.update(probs, y, mask, recorded.order, groups, self.batch.widths)
        with self.stopwatch:
            self.batch.observe_ids(y, None if whole else mask)
