"""Nearest neighbours among all past states of the text."""

from __future__ import annotations

from functools import partial

from labelmem.search import Point
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.method import Beside
from labelmem_paper.experiments.language.neighbours import PastStates


class Neighbours(LanguageContender):
    """Number, width and weight are searched; the past grows with the text, without a limit."""

    grid = {
        "k": [16, 64, 256, 1024],
        "width": [0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2],
        "weight": [0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3],
    }
    start = {"k": 256, "width": 0.025, "weight": 0.1}

    def build(self, point: Point) -> Beside:
        """All past states beside the model."""
        made = partial(
            PastStates, point["k"], point["width"], point["weight"],
            dim=self.model.dim, device=self.task.device,
        )  # fmt: skip
        return Beside(self.model, self.task.opening, made)


CONTENDER = Neighbours
