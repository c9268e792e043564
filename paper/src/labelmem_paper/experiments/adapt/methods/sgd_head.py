"""Gradient descent on the last layer after every label."""

from __future__ import annotations

from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptBaseline
from labelmem_paper.experiments.adapt.frozen import FrozenTask


class SGDHead(AdaptBaseline):
    """The step, and where the row of a new label starts."""

    name = "sgd-head"
    grid = {"rate": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0], "init": ["imprint", "zero"]}
    start = {"rate": 1.0, "init": "zero"}

    def chosen(self, point: Point, frozen: FrozenTask) -> Point:
        """A rate of 1 moves the logit of an example by its whole error, however long h is."""
        length = float(frozen.train_h.square().sum(dim=1).mean())
        return {"lr": point["rate"] / length, "init": point["init"]}


CONTENDER = SGDHead
