"""LMN-fixed: the labeled memory as the paper has it, at one theta."""

from __future__ import annotations

from functools import partial

from labelmem import MemoryConfig
from labelmem.search import Point
from labelmem_paper.experiments.language.cells import Cells
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.method import Beside


class LMNFixed(LanguageContender):
    """Theta, lam, delta and margin are searched; ``memory`` has the other options."""

    grid = {
        "margin": [-6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0],
        "theta": [0.03, 0.05, 0.07, 0.09, 0.12, 0.15, 0.2, 0.25, 0.3],
        "lam": [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0],
        "delta": [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5],
    }
    start = {"margin": -1.0, "theta": 0.12, "lam": 10.0, "delta": 0.75}

    def memory(self, point: Point) -> MemoryConfig:
        """The memory with the settings of ``point``."""
        settings = {name: point[name] for name in ("margin", "lam", "delta")}
        return MemoryConfig(**self.options.get("memory", {}), **settings)

    def build(self, point: Point) -> Beside:
        """Cells beside the model."""
        made = partial(Cells, self.memory(point), point["theta"], dim=self.model.dim)
        return Beside(self.model, self.task.opening, made)


CONTENDER = LMNFixed
