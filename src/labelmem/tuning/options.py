"""What a caller may say about tuning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelmem.errors import ConfigError
from labelmem.search import Grid, Point
from labelmem.starting import GUARD

__all__ = ["GRID", "TuneOptions"]

GRID: Grid = {
    "theta": (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98),
    "lam": (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0),
    "delta": (0.0, 0.25, 0.5, 1.0, 1.5, 2.0),
    "margin": (-3.0, -1.0, 0.0, 1.0, 3.0, 10.0),
}
"""The values that are tried, in the order the coordinates are searched."""

_METRICS = ("log_perplexity", "accuracy")


@dataclass(frozen=True)
class TuneOptions:
    """How settings are looked for; see :func:`labelmem.tuning.tune`."""

    trials: int
    metric: str
    grid: Grid
    batch_size: int
    show: bool | None
    starts: Sequence[Point]
    guard: float | None
    held_out: float
    seed: int

    def __post_init__(self) -> None:
        if self.metric not in _METRICS:
            raise ConfigError(
                f"metric is {self.metric!r}; it must be 'log_perplexity' or 'accuracy'"
            )
        if unknown := set(self.grid) - set(GRID):
            raise ConfigError(f"the grid names {sorted(unknown)}; known are {sorted(GRID)}")
        if unknown := {name for start in self.starts for name in start} - set(GRID):
            raise ConfigError(f"the starts name {sorted(unknown)}; known are {sorted(GRID)}")
        if self.trials < 1:
            raise ConfigError(f"trials is {self.trials}; at least one is needed")
        if self.guard is not None and not self.guard >= 0:
            raise ConfigError(f"guard is {self.guard}; it must be a share from 0, or None")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out is {self.held_out}; it must lie in (0, 1)")

    def guarded(self, default: bool) -> float:
        """The guard: the default form has one unless another is said, the others have none."""
        if self.guard is not None:
            return self.guard
        return GUARD if default else math.inf
