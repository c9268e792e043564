"""The labeled memory as a classifier: it answers, then learns the label."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem import LabeledMemory, MemoryConfig

__all__ = ["replay"]


@torch.no_grad()
def replay(config: MemoryConfig, h: Tensor, y: Tensor, labels: int) -> Tensor:
    """Answer and learn one example after the other; the answers (N,), -1 from an empty memory.

    Every step is small, so the memory is kept on the CPU.

    Examples
    --------
    >>> h, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]), torch.tensor([3, 8, 3])
    >>> replay(MemoryConfig(cells_per_label=2), h, y, labels=9)
    tensor([-1,  3,  3])
    """
    memory = LabeledMemory(h.shape[1], config)
    answers = []
    for x, label in zip(h.cpu()[:, None], y.cpu()[:, None], strict=True):
        P = memory.read(x).scores(labels)
        best, found = P.max(dim=1)
        answers.append(torch.where(best > 0, found, -1))
        memory.write(x, label, P)
    return torch.cat(answers)
