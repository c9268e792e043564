"""The labeled memory: a label's cells merge, so that frequent labels take no more room."""

from __future__ import annotations

from torch import Tensor

from labelmem import MemoryConfig
from labelmem.search import Point
from labelmem_paper.experiments.few_shot.replay import replay
from labelmem_paper.experiments.long_tail.contender import LimitedContender


class LMN(LimitedContender):
    """``memory`` of a table may say more, e.g. ``cells_per_label``, or none to have no limit."""

    grid = {
        "lam": (2.0, 5.0, 10.0, 20.0, 40.0),
        "margin": (-1.0, 0.0, 1.0, 3.0, 10.0),
        "delta": (0.0, 0.1, 0.3),
    }
    start = {"lam": 10.0, "margin": 3.0, "delta": 0.0}

    def answers(self, point: Point, h: Tensor, y: Tensor, capacity: int) -> Tensor:
        """Step by step."""
        said = {**self.options.get("memory", {}), **point}
        return replay(MemoryConfig(capacity=capacity, **said), h, y, int(y.max()) + 1)


CONTENDER = LMN
