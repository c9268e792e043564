"""Nearest neighbours among the training examples and the stream so far, beside the head."""

from __future__ import annotations

from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptContender
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.warm_knn import WarmKNN


class KNN(AdaptContender):
    """Who votes, how sharply, and against how much of the head."""

    grid = {
        "theta": [0.5, 0.7, 0.9, 0.98, 1.0],
        "sharpness": [3.0, 10.0, 30.0, 100.0, 300.0],
        "neighbours": [8, 16, 32, 64, 128],
    }
    start = {"theta": 0.9, "sharpness": 30.0, "neighbours": 32}

    def build(self, point: Point, frozen: FrozenTask) -> WarmKNN:
        """With the training examples in store."""
        method = WarmKNN(frozen.head(), options=WarmKNN.chosen_options(**self.options, **point))
        return method.fit([(frozen.train_h, frozen.train_y)])


CONTENDER = KNN
