"""Choosing lam, delta, margin and theta on validation streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch

from labelmem.combiner import Combiner
from labelmem.errors import ConfigError
from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.progress import progress_bar
from labelmem.recording import lockstep_batches
from labelmem.replay import Features, record, replay
from labelmem.search import Grid, Point, Trial, climb

__all__ = ["GRID", "TuneResult", "apply", "replay_loss", "tune"]

GRID: Grid = {
    "theta": (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98),
    "lam": (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0),
    "delta": (0.0, 0.25, 0.5, 1.0, 1.5, 2.0),
    "margin": (-3.0, -1.0, 0.0, 1.0, 3.0, 10.0),
}
"""The values that are tried, in the order the coordinates are searched."""


@dataclass(frozen=True)
class TuneResult:
    """What was chosen, and every trial on the way."""

    best: Point
    loss: float
    """The best trial's mean loss: nats, or the share of misses when tuned for accuracy."""
    trials: list[Trial] = field(repr=False)


def tune(
    adapter: LMN,
    sequences: Iterable[Recorded],
    trials: int = 40,
    metric: str = "log_perplexity",
    grid: Grid = GRID,
    batch_size: int = 64,
    show: bool | None = None,
) -> TuneResult:
    """Climb to the best lam, delta, margin and theta for these streams, and set them.

    The model runs over the streams once; each trial then replays the memory. One coordinate after
    another is moved along its grid while that helps, so few trials go a long way.

    Parameters
    ----------
    adapter
        What to tune. A :class:`Combiner` is put back to LMN-fixed with the chosen theta, from where
        ``fit`` can train it.
    sequences
        Pairs of inputs and labels, from streams that are neither trained nor tested on.
    trials
        The most settings to try.
    metric
        ``log_perplexity`` or ``accuracy``.
    """
    if metric not in ("log_perplexity", "accuracy"):
        raise ConfigError(f"metric is {metric!r}; it must be 'log_perplexity' or 'accuracy'")
    if unknown := set(grid) - set(GRID):
        raise ConfigError(f"the grid names {sorted(unknown)}; known are {sorted(GRID)}")
    batches = lockstep_batches(sequences, adapter.known, batch_size, adapter.device, adapter.dtype)
    recorded = [record(adapter, batch) for batch in batches]
    with progress_bar("tune", trials, show) as report:
        log = climb(
            lambda point: replay_loss(adapter, point, recorded, metric),
            _current(adapter),
            grid,
            trials,
            on_trial=lambda log: report(note=f"best {min(t['loss'] for t in log):.4f}"),
        )
    best = min(log, key=lambda trial: trial["loss"])
    apply(adapter, best)
    chosen = {name: value for name, value in best.items() if name != "loss"}
    return TuneResult(chosen, best["loss"], log)


@torch.no_grad()
def replay_loss(
    adapter: LMN, point: Point, recorded: list[Features], metric: str = "log_perplexity"
) -> float:
    """Mean loss of LMN-fixed with the settings of ``point`` over recorded streams."""
    trial = adapter.variant(replace(adapter.memory, **_memory(point)), point["theta"])
    total = torch.zeros((), dtype=torch.float64)
    tokens = 0
    for features in recorded:
        for step in replay(trial, features):
            missed = step.tokens - step.hit.sum()
            total += (missed if metric == "accuracy" else step.loss.sum()).cpu()
            tokens += step.tokens
    return float(total) / tokens


def _current(adapter: LMN) -> Point:
    combiner, memory = adapter.combiner, adapter.memory
    theta = combiner.start if isinstance(combiner, Combiner) else combiner
    return {"theta": theta, "lam": memory.lam, "delta": memory.delta, "margin": memory.margin}


def _memory(point: Point) -> Point:
    """The settings of a point that are the memory's."""
    return {name: value for name, value in point.items() if name in ("lam", "delta", "margin")}


def apply(adapter: LMN, point: Point) -> None:
    """Give an adapter the settings of ``point``."""
    memory = replace(adapter.memory, **_memory(point))
    if isinstance(adapter.combiner, Combiner):
        adapter.combiner.restart(point["theta"])
    else:
        adapter.combiner = point["theta"]
    adapter.memory = memory  # last, so that a theta that is refused changes nothing
