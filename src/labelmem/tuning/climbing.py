"""LMN-fixed with settings that are tried one after another on recorded streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch

from labelmem.combiner import Combiner
from labelmem.lmn import LMN
from labelmem.progress import progress_bar
from labelmem.replay import Features, replay
from labelmem.search import Point, Trial, climb_from
from labelmem.starting import Figures, Outcome, measured
from labelmem.tuning.options import TuneOptions

__all__ = ["Climb", "apply", "replay_loss", "replay_point"]

_PENALTY = 100.0
"""What a share of known labels that is lost beyond the guard adds to the loss, so that a climb that
begins outside of the guard finds its way inside."""
_ROUNDING = 1e-9
_OF_MEMORY = ("lam", "delta", "margin", "cells_per_label")


def replay_loss(
    adapter: LMN, point: Point, recorded: list[Features], metric: str = "log_perplexity"
) -> float:
    """Mean loss of LMN-fixed with the settings of ``point`` over recorded streams."""
    return replay_point(adapter, point, recorded, metric)[0]


@torch.no_grad()
def replay_point(
    adapter: LMN, point: Point, recorded: list[Features], metric: str
) -> tuple[float, Outcome]:
    """The mean loss, and what came of every step."""
    trial = adapter.variant(replace(adapter.memory, **_memory(point)), point["theta"])
    total = torch.zeros((), dtype=torch.float64)
    outcomes = []
    for features in recorded:
        losses, hits = [], []
        for step in replay(trial, features):
            missed = step.tokens - step.hit.sum()
            total += (missed if metric == "accuracy" else step.loss.sum()).cpu()
            losses.append(step.loss)
            hits.append(step.hit)
        outcomes.append(measured(features, losses, hits, len(adapter.known)))
    outcome = Outcome.joined(outcomes)
    return float(total) / len(outcome.loss), outcome


def apply(adapter: LMN, point: Point) -> None:
    """Give an adapter the settings of ``point``."""
    memory = replace(adapter.memory, **_memory(point))
    if isinstance(adapter.combiner, Combiner):
        adapter.combiner.restart(point["theta"])
    else:
        adapter.combiner = point["theta"]
    adapter.memory = memory  # last, so that a theta that is refused changes nothing


def _memory(point: Point) -> Point:
    """The settings of a point that are the memory's."""
    return {name: value for name, value in point.items() if name in _OF_MEMORY}


class Climb:
    """A search for settings, with the figures of every trial.

    Parameters
    ----------
    guard
        How much of the accuracy on known labels may be given up.
    default
        What that accuracy is compared with; None is the first trial.
    """

    def __init__(
        self,
        adapter: LMN,
        recorded: list[Features],
        options: TuneOptions,
        guard: float,
        default: Figures | None = None,
    ) -> None:
        self.adapter, self.recorded, self.options = adapter, recorded, options
        self.guard, self.default = guard, default
        self.log: list[Trial] = []
        self.figures: list[Figures] = []
        """Those of each trial in the log."""

    def run(self, starts: Iterable[Point]) -> None:
        """Climb from these points."""
        options = self.options
        with progress_bar("tune", options.trials, options.show) as report:
            self.log = climb_from(
                self._loss,
                starts,
                options.grid,
                options.trials,
                on_trial=lambda log: report(note=f"best {min(t['loss'] for t in log):.4f}"),
            )

    def best(self) -> int | None:
        """Which trial has the smallest loss of those that keep the known labels; None if none."""
        kept = [i for i, found in enumerate(self.figures) if self._lost(found) <= _ROUNDING]
        return min(kept, key=lambda i: float(self.log[i]["loss"]), default=None)

    def point(self, i: int) -> Point:
        """The settings of a trial."""
        return {name: value for name, value in self.log[i].items() if name != "loss"}

    def _loss(self, point: Point) -> float:
        loss, outcome = replay_point(self.adapter, point, self.recorded, self.options.metric)
        self.figures.append(outcome.figures)
        return loss + _PENALTY * self._lost(outcome.figures)

    def _lost(self, found: Figures) -> float:
        """The share of known labels that is lost beyond the guard; 0 where none were known."""
        default = self.default or self.figures[0]
        lost = default.accuracy_known - found.accuracy_known - self.guard
        return max(0.0, lost)  # in this order: nan counts as 0
