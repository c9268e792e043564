"""Kaiser's memory, with as many cells in all as the labeled memory may use."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.search import Point
from labelmem_paper.experiments.few_shot.contender import MemoryContender
from labelmem_paper.methods.kaiser_memory import KaiserMemory


class Kaiser(MemoryContender):
    """Only the noise of its ages is left to choose once the embedding is trained."""

    kind = "kaiser"
    grid = {"age_noise": (0.0, 2.0, 8.0, 32.0)}
    start = {"age_noise": 8.0}

    def answers(self, point: Point, h: Tensor, y: Tensor, labels: int) -> Tensor:
        """Step by step, exactly; on the processor, since every step is a small one."""
        memory = KaiserMemory(self.options["cells"] * labels, h.shape[1], **point)
        return memory.replay(h.cpu(), y, torch.Generator().manual_seed(self.task.run.seed))


CONTENDER = Kaiser
