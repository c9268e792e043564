"""LMN-fixed: the labeled memory mixed with the model at one theta."""

from __future__ import annotations

from functools import cached_property

from labelmem import Adapter, MemoryConfig
from labelmem.experiments.contender import Contender
from labelmem.keys import RecentTokens
from labelmem.recording import lockstep_batches
from labelmem.replay import Features, record
from labelmem.search import Point
from labelmem.tuning import GRID, apply, replay_loss


class LMNFixed(Contender):
    """Theta, lam, delta and margin are searched; the memory is replayed for each trial."""

    grid = GRID
    start = {"theta": 0.5, "lam": 5.0, "delta": 1.0, "margin": 1.0}

    @cached_property
    def adapter(self) -> Adapter:
        """Around the trained model."""
        recent = self.options.get("recent_tokens")
        return Adapter(
            self.task.model(),
            memory=MemoryConfig(**self.options.get("memory", {})),
            key=None if recent is None else RecentTokens(last=recent, seed=self.task.run.seed),
            partition=self.options.get("partition", False),
        )

    @cached_property
    def recorded(self) -> list[Features]:
        """The validation streams with the model's answers, so that a trial need not run it."""
        adapter, task = self.adapter, self.task
        batches = lockstep_batches(
            task.valid, adapter.known, task.config["batch_size"], task.device, adapter.dtype
        )
        return [record(adapter, batch) for batch in batches]

    def build(self, point: Point) -> Adapter:
        """The adapter with the settings of ``point``."""
        apply(self.adapter, point)
        return self.adapter

    def loss(self, point: Point) -> float:
        """Replayed, which is the same figure as evaluating."""
        return replay_loss(self.adapter, point, self.recorded)


CONTENDER = LMNFixed
