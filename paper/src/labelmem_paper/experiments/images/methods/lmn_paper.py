"""LMN as the paper has it: one combiner state per label."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from labelmem import Adapter, Combiner
from labelmem.search import Point
from labelmem_paper.experiments.images.methods.lmn_fixed import LMNFixed
from labelmem_paper.experiments.images.task import Tested
from labelmem_paper.experiments.images.world import World


class LMNPaper(LMNFixed):
    """Tuned as LMN-fixed; then the combiner is trained in the other folds.

    A combiner must know what it looks like when a label is new to the network. So it is trained in
    worlds whose networks were not taught some of the seen characters, ``worlds`` of a table being
    their number; the best epoch is chosen in the validation world.
    """

    def finish(self, point: Point, work: Path) -> Tested:
        """Train the combiner, continuing from its checkpoint, and take it to the test world."""
        task = self.task
        form: dict[str, Any] = {"kind": "label", **self.options.get("combiner", {})}
        combiner = Combiner(theta=point["theta"], seed=task.run.seed, **form)
        adapter = self.with_combiner(combiner, point, task.valid)
        training = dict(task.config["combiner"]) | self.options.get("training", {})
        self.train(adapter, point, training, work / "combiner.safetensors")
        found = super().finish(point, work)
        return replace(
            found,
            all=self.with_combiner(combiner, point, task.test),
            met=self.with_combiner(combiner, point, task.test.among(task.seen)),
        )

    @property
    def worlds(self) -> list[World]:
        """The worlds to learn from."""
        most = min(self.options.get("worlds", 3) + 1, self.task.config["folds"])
        return [self.task.world(fold) for fold in range(1, most)]

    def train(
        self, adapter: Adapter, point: Point, training: dict[str, Any], checkpoint: Path
    ) -> None:
        """On every step of sequences like those of the test."""
        adapter.fit(
            [],
            validation=self.task.valid.streams(self.sees),
            others=[(self.model(world), world.streams(self.sees)) for world in self.worlds],
            checkpoint=checkpoint,
            show=self.task.show,
            seed=self.task.run.seed,
            **training,
        )

    def with_combiner(self, combiner: Combiner, point: Point, world: World) -> Adapter:
        """An adapter in some world that has this combiner."""
        adapter = self.build(point, world)
        adapter.combiner = combiner
        return adapter


CONTENDER = LMNPaper
