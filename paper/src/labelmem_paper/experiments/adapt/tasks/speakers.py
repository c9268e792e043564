"""Nine men saying two vowels (JapaneseVowels): six are known by their voices, three are new."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.linear import linear_task, scaled

__all__ = ["make_speakers"]

KNOWN = 6
MOMENTS = 6
"""At so many moments, evenly spread, the coefficients of an utterance are read."""


def make_speakers(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known speakers."""
    folder = Path(str(needed("sktime", "speakers").__file__)).parent / "datasets" / "data"
    rows = [
        row
        for part in ("TRAIN", "TEST")
        for row in _rows(folder / "JapaneseVowels" / f"JapaneseVowels_{part}.ts")
    ]
    x = np.stack([_moments(series) for series, _ in rows])
    dealt = deal([speaker for _, speaker in rows], KNOWN, seed)
    return linear_task("speakers", torch.from_numpy(scaled(x, dealt)), dealt, seed)


def _rows(path: Path) -> list[tuple[list[str], str]]:
    """Utterances as twelve rows of numbers each, and who spoke."""
    lines = path.read_text().splitlines()
    data = lines[lines.index("@data") + 1 :]
    parts = [line.split(":") for line in data if line]
    return [(part[:-1], part[-1]) for part in parts]


def _moments(series: list[str]) -> npt.NDArray[np.float32]:
    values = [np.array(row.split(","), np.float64) for row in series]
    at = np.linspace(0, 1, MOMENTS)
    columns = [np.interp(at, np.linspace(0, 1, len(row)), row) for row in values]
    return np.concatenate(columns).astype(np.float32)
