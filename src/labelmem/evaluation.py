"""Replaying recorded streams through any online method, and what that cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelmem.batch import StreamBatch
from labelmem.metrics import MetricsResult, StreamMetrics
from labelmem.online import OnlineMethod, Recorded
from labelmem.progress import progress_bar
from labelmem.recording import Lockstep, lockstep_batches

__all__ = ["Evaluation", "Watch", "evaluate"]


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
    """Figures, and microseconds per token for predicting and observing, the model included."""

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
    >>> from labelmem import Adapter
    >>> adapter = Adapter(torch.nn.Linear(2, 2))
    >>> done = evaluate(adapter, [(torch.randn(5, 2), [0, 1, 2, 1, 2])])
    >>> done.result().tokens
    5
    """
    metrics, seconds, tokens = StreamMetrics(), 0.0, 0
    batches = list(
        lockstep_batches(sequences, method.known, batch_size, method.device, method.dtype)
    )
    total = sum(int(batch.mask.sum()) for batch in batches)
    with progress_bar(method.name, total, show) as report:
        for recorded in batches:
            running = _Lockstepper(method, recorded, metrics, watch)
            for t in range(recorded.y.shape[1]):
                seconds += running.step(t)
                done = int(recorded.mask[:, t].sum())
                tokens += done
                report(done, note=f"{metrics.running:.3f} nats")
    return Evaluation(metrics, 1e6 * seconds / tokens)


class _Lockstepper:
    def __init__(
        self,
        method: OnlineMethod[Any],
        recorded: Lockstep,
        metrics: StreamMetrics,
        watch: Callable[[Watch], None] | None,
    ) -> None:
        self.batch = method.streams(recorded.streams)
        self.recorded, self.metrics, self.watch = recorded, metrics, watch
        self.known = len(method.known)

    def step(self, t: int) -> float:
        """One predict and observe; the seconds they took."""
        recorded = self.recorded
        y, mask, x = recorded.y[:, t], recorded.mask[:, t], recorded.at(t)
        start = _now(y.device)
        probs = self.batch.predict(x)
        predicted = _now(y.device) - start
        if self.watch is not None:
            self.watch(Watch(t, self.batch, probs, y, mask, recorded.order))
        new = y >= self.known
        groups = {"new": new, "seen": ~new}
        self.metrics.update(probs, y, mask, recorded.order, groups, self.batch.widths)
        start = _now(y.device)
        self.batch.observe_ids(y, None if bool(mask.all()) else mask)
        return predicted + _now(y.device) - start


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
