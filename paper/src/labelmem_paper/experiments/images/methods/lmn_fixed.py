"""LMN-fixed: the labeled memory mixed with the network at one theta."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import nn

from labelmem import Adapter, MemoryConfig
from labelmem.errors import ConfigError
from labelmem.keys import Hidden, Joined, Key
from labelmem.search import Point
from labelmem.tuning import apply
from labelmem_paper.experiments.images.beliefs import Beliefs
from labelmem_paper.experiments.images.contender import ImageContender
from labelmem_paper.experiments.images.maps import BesideMaps, Maps
from labelmem_paper.experiments.images.task import ImageTask, Tested
from labelmem_paper.experiments.images.world import Sees, World
from labelmem_paper.experiments.records import Record

THETAS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
MARGINS = (0.0, 1.0, 3.0, 10.0, math.inf)
"""The points of the trade-off between new and seen labels."""


class LMNFixed(ImageContender):
    """Theta, lam, delta and margin are searched.

    A table may say options of the memory (``margin = "always"`` writes everything, and leaves
    nothing to search there), whether labels are divided between memory and network, the shares of
    the parts of the ``key`` where that is not h, and whether to record the trade-off ``curve``.
    """

    grid = {
        "theta": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98),
        "lam": (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 40.0),
        "delta": (0.0, 0.5, 1.0, 2.0),
        "margin": (-1.0, 0.0, 1.0, 3.0, 10.0),
    }
    start = {"theta": 0.8, "lam": 5.0, "delta": 0.0, "margin": 3.0}

    def __init__(self, task: ImageTask) -> None:
        super().__init__(task)
        memory = self.options.get("memory", {})
        self.leave_unsearched(memory)
        self.memory = MemoryConfig.from_plain(memory)

    @property
    def sees(self) -> Sees:
        """Whether the key has a part from the maps."""
        return "maps" if "maps" in self.options.get("key", {}) else "h"

    def model(self, world: World) -> nn.Module:
        """The head of a world, as its inputs ask for."""
        return BesideMaps(world.head) if self.sees == "maps" else world.head

    def adapter(self, world: World) -> Adapter:
        """Around the head of a world."""
        partition = self.options.get("partition", False)
        return Adapter(
            self.model(world),
            memory=self.memory,
            combiner=0.5,
            key=self.key(world),
            partition=partition,
        )

    def key(self, world: World) -> Key | None:
        """The parts that the table names, joined; None is h alone."""
        makers: dict[str, Callable[[float], Key]] = {
            "h": Hidden,
            "maps": lambda share: Maps(world.maps.shape[2], share),
            "beliefs": lambda share: Beliefs(world.head, share),
        }
        shares: Mapping[str, float] = self.options.get("key", {})
        if unknown := set(shares) - set(makers):
            raise ConfigError(f"key has {sorted(unknown)}; there are {sorted(makers)}")
        return Joined(*(makers[name](share) for name, share in shares.items())) if shares else None

    def loss(self, point: Point) -> float:
        """The share of second showings that are missed."""
        made = self.build(point, self.task.valid)
        return self.task.validation_loss(made, self.sees)

    def build(self, point: Point, world: World) -> Adapter:
        """With the settings of ``point``."""
        adapter = self.adapter(world)
        apply(adapter, point)
        return adapter

    def finish(self, point: Point, work: Path) -> Tested:
        """Tested at other thetas and margins too, where the table asks for that."""
        ready = replace(super().finish(point, work), sees=self.sees)
        return replace(ready, curve=self._tradeoff(point)) if self.options.get("curve") else ready

    def _tradeoff(self, point: Point) -> list[Record]:
        """Accuracy on new and on seen labels for every theta and margin."""
        task, found = self.task, []
        for margin in MARGINS:
            for theta in THETAS:
                adapter = self.adapter(task.test)
                apply(adapter, {**point, "margin": margin, "theta": theta})
                metrics = (
                    task.scored(adapter, task.test, self.sees).metrics.result(resamples=1).metrics
                )
                named = {k: v for k, v in metrics.items() if k.startswith("accuracy")}
                margin_said = "always" if margin == math.inf else margin
                found.append({"theta": theta, "margin": margin_said, **named})
        return found


CONTENDER = LMNFixed
