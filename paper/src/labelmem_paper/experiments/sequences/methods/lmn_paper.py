"""LMN as the paper has it: h as the key, one combiner state per label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelmem import Adapter, Combiner
from labelmem.search import Point
from labelmem_paper.experiments.sequences.methods.lmn_fixed import LMNFixed


class LMNPaper(LMNFixed):
    """Tuned as LMN-fixed; then the combiner is trained from there.

    About streams that the model was trained on it is surer than it will be about new ones, and a
    combiner would learn to trust it. So the combiner is trained on validation streams, a part of
    them held out; or, with ``folds``, on all training streams, each seen through a model that was
    trained without its fold.
    """

    kind = "label"

    def finish(self, point: Point, work: Path) -> Adapter:
        """Train the combiner, continuing from its checkpoint."""
        adapter, task = self.build(point), self.task
        form: dict[str, Any] = dict(self.options.get("combiner", {}))
        adapter.combiner = Combiner(
            kind=self.kind, theta=point["theta"], seed=task.run.seed, **form
        )
        training: dict[str, Any] = dict(self.task.config["combiner"])
        training |= self.options.get("training", {})
        adapter.backbone.model.requires_grad_(training.get("train_model", False))
        folds = self.options.get("folds", 0)
        model = self.options.get("model")
        parts = [(fold, folds) for fold in range(folds)]
        adapter.fit(
            [] if folds else task.valid,
            validation=task.valid if folds else None,
            others=[(task.model(model, without=part), task.fold(part)) for part in parts],
            checkpoint=work / "combiner.safetensors",
            show=task.show,
            seed=task.run.seed,
            **training,
        )
        adapter.backbone.model.requires_grad_(False)
        return adapter


CONTENDER = LMNPaper
