"""A few test sequences step by step, by the numbers of their pictures, for a report to draw.

Pictures belong to the data set and are not copied into a record; numbers are enough to find them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from labelmem import Adapter
from labelmem_paper.experiments.images.world import Sees, World
from labelmem_paper.experiments.records import Record

__all__ = ["strips_of"]

LOUDEST = 3
"""How many cells are kept of each step."""


def strips_of(
    adapter: Adapter, world: World, sees: Sees, rows: npt.NDArray[np.int64], count: int
) -> list[Record]:
    """The first ``count`` sequences of a world, as the adapter goes through them.

    Parameters
    ----------
    adapter
        One that writes every picture into one cell per label, so that a cell is the sum of all
        showings of its label so far.
    rows
        (characters, drawings) the number of each picture in the data set.
    """
    return [
        {"sequence": i, "steps": _steps(adapter, world, sees, rows, i)}
        for i in range(min(count, len(world.showings.label)))
    ]


@torch.no_grad()
def _steps(
    adapter: Adapter, world: World, sees: Sees, rows: npt.NDArray[np.int64], sequence: int
) -> list[Record]:
    label = world.showings.label[sequence].tolist()
    pictures = rows[label, world.showings.drawing[sequence].tolist()].tolist()
    x, _ = world.streams(sees)[sequence]
    stream = adapter.stream()
    shown: dict[int, list[int]] = {}
    found = []
    for step, y, picture in zip(x, label, pictures, strict=True):
        p = stream.predict(step)
        why = stream.explain(p)
        # A label is told by one of its pictures: any drawing will do.
        cells = [
            {"pictures": list(shown[cell.label]), "share": round(cell.share, 3)}
            for cell in why.cells[:LOUDEST]
        ]
        found.append(
            {
                "picture": picture,
                "answer": int(rows[p.label, 0]),
                "right": p.label == y,
                "again": y in shown,
                "known": bool(world.known[y]),
                "probability": round(why.probability, 3),
                "theta": None if why.theta is None else round(why.theta, 3),
                "cells": cells,
            }
        )
        stream.observe(y)
        shown.setdefault(y, []).append(picture)
    return found
