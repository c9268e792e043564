"""Logistic regression, fitted again after every 50 labels of a stream."""

from __future__ import annotations

from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptContender
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.logistic import best_strength
from labelmem_paper.experiments.adapt.refitting import Refitting

ITERATIONS = 30
"""The most of each fit that the strength is chosen by."""


class Logistic(AdaptContender):
    """Its strength is the one that does best on a fifth of the training examples."""

    def build(self, point: Point, frozen: FrozenTask) -> Refitting:
        """Around the head, beginning with its weights."""
        taught = frozen.train_h, frozen.train_y
        strength = best_strength(*taught, frozen.labels, self.task.run.seed, ITERATIONS)
        options = Refitting.chosen_options(strength=strength, **self.options)
        return Refitting(frozen.head(), taught, options)


CONTENDER = Logistic
