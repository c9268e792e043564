"""Kaiser's memory: what is oldest goes, whatever its label."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.search import Point
from labelmem_paper.experiments.long_tail.contender import LimitedContender
from labelmem_paper.methods.kaiser_memory import KaiserMemory


class Kaiser(LimitedContender):
    """Only the noise of its ages is left to choose."""

    grid = {"age_noise": (0.0, 2.0, 8.0, 32.0)}
    start = {"age_noise": 8.0}

    def answers(self, point: Point, h: Tensor, y: Tensor, capacity: int) -> Tensor:
        """Step by step, exactly; on the processor, since every step is a small one."""
        memory = KaiserMemory(capacity, h.shape[1], **point)
        return memory.replay(h.cpu(), y, torch.Generator().manual_seed(self.task.run.seed))


CONTENDER = Kaiser
