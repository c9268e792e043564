"""LMN: a combiner that was trained among characters it did not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from labelmem import Adapter, Combiner
from labelmem.experiments.images.methods.lmn_fixed import LMNFixed
from labelmem.experiments.images.task import Tested
from labelmem.experiments.images.world import World
from labelmem.search import Point


class LMN(LMNFixed):
    """Tuned as LMN-fixed; then the combiner is trained in the other folds.

    A combiner must know what it looks like when a label is new to the network. So it is trained in
    worlds whose networks were not taught some of the seen characters, ``worlds`` of a table being
    their number; the best epoch is chosen in the validation world.
    """

    kind = "stream"

    def finish(self, point: Point, work: Path) -> Tested:
        """Train the combiner, continuing from its checkpoint, and take it to the test world."""
        task, seed = self.task, self.task.run.seed
        form: dict[str, Any] = dict(self.options.get("combiner", {}))
        adapter = self.build(point, task.valid)
        adapter.combiner = Combiner(kind=self.kind, theta=point["theta"], seed=seed, **form)
        training = dict(task.config["combiner"]) | self.options.get("training", {})
        most = min(self.options.get("worlds", 3) + 1, task.config["folds"])
        worlds = [task.world(fold) for fold in range(1, most)]
        adapter.fit(
            [],
            validation=task.valid.streams(self.sees),
            others=[(self.model(world), world.streams(self.sees)) for world in worlds],
            checkpoint=work / "combiner.safetensors",
            show=task.show,
            seed=seed,
            **training,
        )
        trained = adapter.combiner
        assert isinstance(trained, Combiner)
        found = super().finish(point, work)
        return replace(
            found,
            all=self._with(trained, point, task.test),
            met=self._with(trained, point, task.test.among(task.seen)),
        )

    def _with(self, combiner: Combiner, point: Point, world: World) -> Adapter:
        adapter = self.build(point, world)
        adapter.combiner = combiner
        return adapter


CONTENDER = LMN
