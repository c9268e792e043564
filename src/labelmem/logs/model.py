"""The model behind a log: what is new to a user, from what the user has had."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from labelmem.adapter import Adapter
from labelmem.config import MemoryConfig
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import HistoryModel

__all__ = ["CAPACITY", "LogModel", "adapter_around", "made"]

CAPACITY = 1000
"""The most items that are remembered of one user; the one not seen for longest makes room. It
bounds what a user's state takes on disk (about 1 kB an item), and many users side by side."""


class LogModel(HistoryModel):
    """A history model that is told of items it does not know, and makes nothing of them.

    Their tokens lie above the start's; for the model they count as the start does, while a memory
    key can tell them apart.

    Examples
    --------
    >>> model = LogModel(labels=3, dim=4).eval()
    >>> a, _ = model(torch.tensor([3]), model.initial_state(1))
    >>> b, _ = model(torch.tensor([17]), model.initial_state(1))
    >>> bool((a == b).all())
    True
    """

    def _inputs(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        return super()._inputs(tokens.clamp(max=self.labels))


def made(labels: int, options: dict[str, Any], seed: int, device: torch.device) -> LogModel:
    """An untrained model; the same seed gives the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LogModel(labels, **options).to(device)


def adapter_around(model: LogModel, seed: int) -> Adapter:
    """Memory and mixture as in row ``lmn`` of Table 2.

    Everything is written; keys are random directions of the last two items and of their pair beside
    a little of h; the memory answers for items that the user had, the model for the others.
    """
    return Adapter(
        model.eval().requires_grad_(False),
        combiner=0.5,
        memory=MemoryConfig(margin=math.inf, capacity=CAPACITY),
        key=Joined(RecentTokens(last=2, pair=True, seed=seed), Hidden(0.3)),
        partition=True,
    )
