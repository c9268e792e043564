"""The labeled memory: a label's cells merge, so that frequent labels take no more room."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.memory import LabeledMemory
from labelmem.search import Point
from labelmem_paper.experiments.long_tail.contender import LimitedContender


class LMN(LimitedContender):
    """``memory`` of a table may say more, e.g. ``cells_per_label``, or none to have no limit."""

    grid = {
        "lam": (2.0, 5.0, 10.0, 20.0, 40.0),
        "margin": (-1.0, 0.0, 1.0, 3.0, 10.0),
        "delta": (0.0, 0.1, 0.3),
    }
    start = {"lam": 10.0, "margin": 3.0, "delta": 0.0}

    @torch.no_grad()
    def answers(self, point: Point, h: Tensor, y: Tensor, capacity: int) -> Tensor:
        """Step by step."""
        said = {**self.options.get("memory", {}), **point}
        h = h.cpu()  # every step is a small one
        memory = LabeledMemory(h.shape[1], MemoryConfig(capacity=capacity, **said))
        labels, answers = int(y.max()) + 1, []
        for t in range(len(y)):
            step = h[t : t + 1]
            P = memory.read(step).scores(labels)
            answers.append(torch.where(P.amax(dim=1) > 0, P.argmax(dim=1), -1))
            memory.write(step, y[t : t + 1], P)
        return torch.cat(answers)


CONTENDER = LMN
