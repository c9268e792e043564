"""Scoring streams of pictures on the second showing of each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelmem.evaluation import replayed
from labelmem.metrics import StreamMetrics
from labelmem.online import OnlineMethod, Recorded
from labelmem.recording import lockstep_batches
from labelmem.stopwatch import Stopwatch
from labelmem_paper.experiments.traces import ThetaTraces

__all__ = ["Scored", "score"]


@dataclass(frozen=True)
class Scored:
    """Figures of the second showings, and beside them those of the first."""

    metrics: StreamMetrics
    first: StreamMetrics
    """Figures of the first showings, which the tables do not count."""
    traces: ThetaTraces
    us_per_token: float
    """Microseconds for predicting and observing one picture, whichever showing it is."""

    @property
    def accuracy(self) -> float:
        """Share of the second showings that were recognised."""
        return self.metrics.result(resamples=1).metrics["accuracy"]


def score(
    method: OnlineMethod[Any],
    streams: Sequence[Recorded],
    second: Tensor,
    known: Tensor,
    batch_size: int,
) -> Scored:
    """Predict every label of every stream before revealing it; count those that come again.

    Parameters
    ----------
    streams
        Pairs of inputs and labels, all of the same length.
    second
        (n, T) which steps count.
    known
        (labels,) which labels the method's model was taught; accuracy is also split by that.

    Examples
    --------
    >>> from labelmem import Adapter
    >>> x, y = torch.tensor([[9.0, 0.0], [0.0, 1.0], [8.0, 0.0]]), torch.tensor([2, 1, 2])
    >>> adapter = Adapter(torch.nn.Linear(2, 2), combiner=1.0)
    >>> second, known = torch.tensor([[False, False, True]]), torch.tensor([True, True, False])
    >>> score(adapter, [(x, y)], second, known, 8).accuracy
    1.0
    """
    metrics, first, traces = StreamMetrics(), StreamMetrics(), ThetaTraces()
    device, stopwatch, tokens = method.device, Stopwatch(method.device), 0
    truth = torch.stack([torch.as_tensor(y) for _, y in streams])
    batches = lockstep_batches(streams, method.known, batch_size, device, method.dtype)
    for seen in replayed(method, batches, stopwatch):
        traces(seen)
        order, t = list(seen.order), seen.t
        counts, old = second[order, t].to(device), known[truth[order, t]].to(device)
        groups = {"new": ~old, "seen": old}
        for found, mask in ((metrics, counts), (first, ~counts)):
            if bool(mask.any()):
                found.update(seen.probs, seen.y, mask, seen.order, groups, seen.batch.widths)
        tokens += seen.running
    return Scored(metrics, first, traces, 1e6 * stopwatch.seconds() / tokens)
