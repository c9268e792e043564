"""LMN-fixed: the labeled memory mixed with the model at one theta."""

from __future__ import annotations

from functools import cached_property

from labelmem import Adapter, MemoryConfig
from labelmem.keys import Hidden, Joined, Key, RecentTokens
from labelmem.recording import lockstep_batches
from labelmem.replay import Features, record
from labelmem.search import Point
from labelmem.tuning import GRID, apply, replay_loss
from labelmem_paper.experiments.sequences.contender import Contender
from labelmem_paper.experiments.sequences.task import SequenceTask


class LMNFixed(Contender):
    """Theta, lam, delta and margin are searched; the memory is replayed for each trial.

    A table may name a model other than the run's, options of the memory (``margin = "always"``
    writes everything, and leaves nothing to search there), the parts of the key, and whether labels
    are divided between memory and model.
    """

    grid = GRID
    start = {"theta": 0.5, "lam": 5.0, "delta": 1.0, "margin": 1.0}

    def __init__(self, task: SequenceTask) -> None:
        super().__init__(task)
        memory = self.options.get("memory", {})
        self.leave_unsearched(memory)
        self.memory = MemoryConfig.from_plain(memory)

    @cached_property
    def adapter(self) -> Adapter:
        """Around the trained model."""
        return Adapter(
            self.task.model(self.options.get("model")),
            memory=self.memory,
            combiner=0.5,
            key=self._key(),
            partition=self.options.get("partition", False),
        )

    def _key(self) -> Key | None:
        """What the table says of it: ``recent`` tokens, their ``pair``, a share of ``hidden``."""
        parts = self.options.get("key")
        if parts is None:
            return None
        recent = RecentTokens(
            last=parts.get("recent", 2), pair=parts.get("pair", False), seed=self.task.run.seed
        )
        return Joined(recent, Hidden(parts["hidden"])) if "hidden" in parts else recent

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
