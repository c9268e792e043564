"""LMN: the combiner decides theta, trained on the training streams."""

from __future__ import annotations

from pathlib import Path

from labelmem import Adapter, Combiner
from labelmem.experiments.methods.lmn_fixed import LMNFixed
from labelmem.search import Point


class LMN(LMNFixed):
    """Tuned as LMN-fixed; then the combiner is trained from there."""

    def finish(self, point: Point, work: Path) -> Adapter:
        """Train the combiner, continuing from its checkpoint."""
        adapter, task = self.build(point), self.task
        training = dict(task.config["combiner"]) | self.options.get("combiner", {})
        form = {k: training.pop(k) for k in ("hidden", "kind", "active_threshold") if k in training}
        adapter.combiner = Combiner(theta=point["theta"], seed=task.run.seed, **form)
        adapter.fit(
            task.train,
            validation=task.valid,
            checkpoint=work / "combiner.safetensors",
            show=task.show,
            seed=task.run.seed,
            **training,
        )
        return adapter


CONTENDER = LMN
