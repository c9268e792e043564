"""The continuous neural cache (Grave 2016)."""

from __future__ import annotations

from functools import partial

from labelmem.search import Point
from labelmem_paper.experiments.language.cache import NeuralCache
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.method import Beside


class Cache(LanguageContender):
    """Flatness and weight are searched; the window is ``memory.capacity`` words long."""

    grid = {
        "flat": [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3],
        "weight": [0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4],
    }
    start = {"flat": 0.3, "weight": 0.1}

    def build(self, point: Point) -> Beside:
        """A window beside the model."""
        made = partial(
            NeuralCache, self.cells, point["flat"], point["weight"],
            dim=self.model.dim, device=self.task.device,
        )  # fmt: skip
        return Beside(self.model, self.task.opening, made)


CONTENDER = Cache
