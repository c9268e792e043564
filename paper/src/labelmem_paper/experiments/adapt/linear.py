"""Features that are given, with a logistic regression on them as the classifier."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem_paper.experiments.adapt.dealing import Deal
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.logistic import fit_logistic

__all__ = ["linear_task", "scaled"]

Floats = npt.NDArray[np.float32]


def linear_task(name: str, h: Tensor, dealt: Deal, seed: int) -> FrozenTask:
    """Train a head on what is taught of the features h (n, d); the rest is shown to it."""
    taught, shown = h[torch.from_numpy(dealt.taught)], h[torch.from_numpy(dealt.shown)]
    head = fit_logistic(taught, dealt.train_y, dealt.known, seed)
    return dealt.task(name, head, taught, shown, seed)


def scaled(x: Floats, dealt: Deal) -> Floats:
    """Columns of x (n, d) with mean 0 and deviation 1 over what is taught."""
    taught = x[dealt.taught]
    spread = taught.std(axis=0)
    found: Floats = (x - taught.mean(axis=0)) / np.where(spread > 0, spread, np.float32(1))
    return found
