"""The labeled memory alone: P = s."""

from __future__ import annotations

from torch import Tensor

from labelmem import MemoryConfig
from labelmem.search import Point
from labelmem_paper.experiments.few_shot.contender import MemoryContender
from labelmem_paper.experiments.few_shot.replay import replay


class LMN(MemoryContender):
    """How it compares and when it writes is searched; ``cells`` per label is the table's."""

    kind = "labeled"
    grid = {
        "lam": (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0),
        "margin": (0.0, 0.3, 1.0, 3.0, 10.0, 30.0),
        "delta": (0.0, 0.1, 0.3, 1.0),
    }
    start = {"lam": 10.0, "margin": 3.0, "delta": 0.0}

    def answers(self, point: Point, h: Tensor, y: Tensor, labels: int) -> Tensor:
        """Step by step."""
        config = MemoryConfig(cells_per_label=self.options["cells"], **point)
        return replay(config, h, y, labels)


CONTENDER = LMN
