"""Pieces of photographs (Statlog): four kinds of ground known, three new, plain columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.linear import linear_task, scaled

__all__ = ["make_segments"]

KNOWN = 4


def make_segments(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known kinds; columns are scaled by what is taught."""
    rows = list(needed("river.datasets", "segments").ImageSegments())
    x = np.array([list(columns.values()) for columns, _ in rows], np.float32)
    dealt = deal([kind for _, kind in rows], KNOWN, seed)
    return linear_task("segments", torch.from_numpy(scaled(x, dealt)), dealt, seed)
