"""How a data set may lie on the disk, and how each way is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from labelmem_paper.datasets.source import Source

__all__ = ["Arrays", "Dataset", "Layout"]

Arrays = dict[str, npt.NDArray[np.generic]]
"""A prepared data set as named plain arrays: what the cache stores."""

Recipe = TypeVar("Recipe")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Layout(Generic[Recipe]):
    """One way a data set may lie on the disk."""

    form: Literal["raw", "compact"]
    """As published, or repacked."""
    files: tuple[str, ...]
    """The files it consists of; all must be there."""
    read: Callable[[tuple[Path, ...], Recipe], Arrays]
    """Reads the files and applies the recipe."""
    folder: bool = False
    """Whether the one entry of ``files`` is a folder."""
    common_names: bool = False
    """Whether the names are too common to be looked for outside a folder of the data set's name."""
    subset: bool = False
    """Whether this holds only part of what was published."""
    note: str = ""
    """What it lacks."""


@dataclass(frozen=True)
class Dataset(Generic[Recipe, Result]):
    """A data set: its default recipe, the ways it may lie on the disk, what it is made into."""

    name: str
    """As it is asked for."""
    recipe: Recipe
    """Default options of its preparation."""
    layouts: tuple[Layout[Recipe], ...]
    """In order of preference; raw ones first."""
    assemble: Callable[[Arrays, Recipe, Source, int], Result]
    """Makes the container from the prepared arrays, the recipe, the source and the seed."""
