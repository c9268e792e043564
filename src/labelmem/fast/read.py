"""The read of one stream, in the form that reads of many have."""

from __future__ import annotations

import numpy as np
import torch

from labelmem.fast import Array, places, tensor
from labelmem.fast.cells import OneStream, Seen
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["read_one"]


def read_one(
    cells: OneStream, h: Array, lam: float, delta: float, time: int, past: bool
) -> MemoryRead:
    """Eq. 2 and 3 for ``h`` (d,), with the labels' past if that is asked for.

    What is told shares nothing with the cells: a later write does not change it.
    """
    seen, k = cells.read(h, lam, delta), cells.used
    strength = tensor(seen.at_cells(seen.strength))
    weight = torch.ones(1, 1, dtype=strength.dtype).expand(1, k)
    if seen.weight is not None:
        weight = tensor(seen.weight)
    return MemoryRead(
        label=tensor(cells.label[:k].copy()),
        alpha=strength if seen.lead is None else tensor(cells.alpha[:k].copy()),
        weight=weight,
        score=tensor(seen.at_cells(seen.score)),
        group=tensor(places(k) if seen.lead is None else cells.group[:k].copy()),
        strength=strength,
        cosine=tensor(seen.at_cells(seen.cosine)),
        age=tensor((time + 1 - cells.written[:k]).astype(np.int32, copy=False)),
        past=_past(cells, seen, time) if past else None,
    )


def _past(cells: OneStream, seen: Seen, time: int) -> LabelPast:
    past = cells.past(time)
    size = seen.block_size.copy()
    told = (past.writes, past.age, past.since_first, past.rates, seen.block_cosine, size)
    return LabelPast(*(tensor(seen.at_cells(values)) for values in told))
