"""Made-up characters, for runs in seconds without any data."""

from __future__ import annotations

import numpy as np

from labelmem.errors import ConfigError
from labelmem_paper.datasets import Images, Source, load
from labelmem_paper.experiments.table import Run

__all__ = ["MADE_UP", "load_images", "made_up"]

MADE_UP = "drawings"
"""The data set that stands in for all others at the smoke size."""


def load_images(run: Run) -> Images:
    """The pictures of a run: a data set of characters, or made-up ones."""
    recipe = run.config.get("recipe")
    if run.dataset == MADE_UP:
        return made_up(**(recipe or {}))
    data = load(run.dataset, recipe, seed=run.seed)
    if not isinstance(data, Images):
        raise ConfigError(f"{run.dataset} holds no images")
    return data


def made_up(
    characters: int = 24, drawers: int = 8, size: int = 8, strokes: int = 3, seed: int = 0
) -> Images:
    """Characters of a few straight strokes between points that every drawer moves a little.

    The first half of the characters is background, meant for training.

    Examples
    --------
    >>> images = made_up(characters=4, drawers=3)
    >>> len(images), images.labels, images.size, int(images.background.sum())
    (12, 4, 8, 2)
    """
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.1, 0.9, (characters, 1, strokes, 2, 2))
    moved = ends + rng.normal(0, 0.03, (characters, drawers, strokes, 2, 2))
    along = np.linspace(0, 1, 2 * size)[:, None]
    points = moved[..., :1, :] * (1 - along) + moved[..., 1:, :] * along
    cells = np.clip((points * size).astype(np.int64), 0, size - 1).reshape(
        characters * drawers, -1, 2
    )
    pixels = np.zeros((characters * drawers, size, size), np.uint8)
    rows = np.arange(len(pixels))[:, None]
    pixels[rows, cells[..., 0], cells[..., 1]] = 255
    return Images(
        MADE_UP,
        pixels,
        character=np.repeat(np.arange(characters), drawers),
        drawer=np.tile(np.arange(1, drawers + 1), characters),
        names=tuple(f"Made up/{number}" for number in range(characters)),
        background=np.arange(characters) < characters // 2,
        source=Source("generated"),
    )
