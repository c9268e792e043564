"""Theta of a few example streams over time, kept with a record for the report."""

from __future__ import annotations

from typing import Any

from labelmem.evaluation import Watch

__all__ = ["ThetaTraces"]

_EXAMPLES = 3
_STEPS = 300


class ThetaTraces:
    """Watches an evaluation and keeps the memory's weight for the true label, step by step.

    The longest streams come first in a batch, so the first rows of the first batch are the examples
    that show most.
    """

    def __init__(self) -> None:
        self._theta: dict[int, list[float]] = {}

    def __call__(self, watch: Watch) -> None:
        """Look at one lockstep."""
        theta = None if watch.batch.last is None else watch.batch.last.theta
        if theta is None or watch.t >= _STEPS:
            return
        if watch.t == 0 and not self._theta:
            self._theta = {stream: [] for stream in watch.order[:_EXAMPLES]}
        for row, stream in enumerate(watch.order[:_EXAMPLES]):
            if stream in self._theta and bool(watch.mask[row]):
                y = min(int(watch.y[row]), theta.shape[1] - 1)
                self._theta[stream].append(round(float(theta[row, y]), 3))

    def record(self) -> list[dict[str, Any]]:
        """The traces that tell something: a theta that never moves is left out."""
        return [
            {"user": f"test stream {stream}", "theta": theta}
            for stream, theta in self._theta.items()
            if len(set(theta)) > 1
        ]
