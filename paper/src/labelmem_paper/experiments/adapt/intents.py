"""A bank's support desk that knows 50 of 77 intents, on sentence vectors of some encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelmem_paper.datasets import load
from labelmem_paper.datasets.cache import remember
from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.linear import linear_task
from labelmem_paper.experiments.records import digest

__all__ = ["intents_task"]

KNOWN = 50


def intents_task(
    name: str, embed: Callable[[Sequence[str]], Tensor], seed: int, cache: Path
) -> FrozenTask:
    """The head learns from the training texts of the known intents and meets the test texts.

    Parameters
    ----------
    embed
        Gives vectors (n, d) of n texts; they are kept in the cache.
    """
    data = load("banking77")
    kept = cache / f"{name}-{digest(data.texts)}.npz"
    vectors = remember(kept, lambda: {"h": embed(data.texts).numpy()})
    h = torch.from_numpy(vectors["h"]).float()
    later = np.isin(np.arange(len(data)), data.split.part("test"))
    return linear_task(name, h, deal(data.categories, KNOWN, seed, teachable=~later), seed)
