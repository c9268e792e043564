"""Lam and delta as numbers that can be trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmem.config import MemoryConfig

__all__ = ["Kernel"]


class Kernel(nn.Module):
    """Lam and delta as trainable numbers, kept positive by their logarithms.

    Examples
    --------
    >>> [round(float(value.detach()), 3) for value in Kernel(MemoryConfig(lam=5.0, delta=0.5))()]
    [5.0, 0.5]
    """

    def __init__(self, config: MemoryConfig) -> None:
        super().__init__()
        start = torch.tensor([config.lam, config.delta]).clamp(min=1e-3)
        self.log = nn.Parameter(start.log())

    def forward(self) -> tuple[Tensor, Tensor]:
        """The current lam and delta."""
        lam, delta = self.log.exp()
        return lam, delta
