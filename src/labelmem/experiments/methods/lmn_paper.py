"""LMN as the paper has it: h as the key, one combiner state per label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelmem import Adapter, Combiner
from labelmem.experiments.methods.lmn_fixed import LMNFixed
from labelmem.search import Point


class LMNPaper(LMNFixed):
    """Tuned as LMN-fixed; then the combiner is trained from there."""

    kind = "label"

    def finish(self, point: Point, work: Path) -> Adapter:
        """Train the combiner, continuing from its checkpoint.

        On validation streams, a part of them held out: about those that the model was trained on
        it is surer than it will be about new ones, and a combiner would learn to trust it.
        """
        adapter, task = self.build(point), self.task
        form: dict[str, Any] = dict(self.options.get("combiner", {}))
        adapter.combiner = Combiner(
            kind=self.kind, theta=point["theta"], seed=task.run.seed, **form
        )
        adapter.fit(
            task.valid,
            checkpoint=work / "combiner.safetensors",
            show=task.show,
            seed=task.run.seed,
            **task.config["combiner"],
        )
        return adapter


CONTENDER = LMNPaper
