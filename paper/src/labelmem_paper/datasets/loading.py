"""Load a data set by name: find its files, apply a recipe, keep the result."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

from labelmem.errors import ConfigError
from labelmem_paper.datasets import (
    banking77,
    brightkite,
    fsq_nyc,
    fsq_tokyo,
    geolife,
    omniglot,
    text8,
    wikitext2,
    yoochoose,
)
from labelmem_paper.datasets.cache import entry_path, remember
from labelmem_paper.datasets.images import Images
from labelmem_paper.datasets.intents import Intents
from labelmem_paper.datasets.layout import Dataset
from labelmem_paper.datasets.locate import find, locate
from labelmem_paper.datasets.registry import info
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.synthetic import SyntheticRecipe, synthetic
from labelmem_paper.datasets.text import Text

__all__ = ["Loaded", "default_recipe", "load", "source_of"]

logger = logging.getLogger(__name__)

Loaded = Sequences | Images | Text | Intents

SequenceName = Literal["brightkite", "fsq-nyc", "fsq-tokyo", "geolife", "yoochoose", "synthetic"]
TextName = Literal["wikitext2", "text8"]

_DATASETS: dict[str, Dataset[Any, Loaded]] = {
    module.DATASET.name: module.DATASET
    for module in (
        brightkite,
        fsq_nyc,
        fsq_tokyo,
        geolife,
        yoochoose,
        omniglot,
        wikitext2,
        text8,
        banking77,
    )
}


@overload
def load(
    name: SequenceName, recipe: object = None, seed: int = 0, root: str | Path | None = None
) -> Sequences: ...
@overload
def load(
    name: TextName, recipe: object = None, seed: int = 0, root: str | Path | None = None
) -> Text: ...
@overload
def load(
    name: Literal["omniglot"],
    recipe: object = None,
    seed: int = 0,
    root: str | Path | None = None,
) -> Images: ...
@overload
def load(
    name: Literal["banking77"],
    recipe: object = None,
    seed: int = 0,
    root: str | Path | None = None,
) -> Intents: ...
@overload
def load(
    name: str, recipe: object = None, seed: int = 0, root: str | Path | None = None
) -> Loaded: ...
def load(name: str, recipe: object = None, seed: int = 0, root: str | Path | None = None) -> Loaded:
    """Load a data set.

    Its files are looked for in the folders of ``LABELMEM_DATA`` and then among the downloads. The
    result of the recipe is kept in the cache folder; the split is drawn anew from the seed.

    Parameters
    ----------
    name : one of `names`.
    recipe : options of its preparation: a recipe, a mapping of some of its fields to values, or
        None for the default.
    seed : of the split (and of the generator, for ``synthetic``).
    root : folder to look in instead of ``LABELMEM_DATA``.

    Examples
    --------
    >>> data = load("synthetic", {"users": 10}, seed=1)
    >>> len(data), data.source.form
    (10, 'generated')
    """
    options = _recipe(name, recipe)
    if isinstance(options, SyntheticRecipe):
        return synthetic(options, seed)
    dataset = _DATASETS[name]
    layout, paths = locate(dataset, root)
    source = Source(layout.form, paths, layout.subset, layout.note)
    logger.info("%s is read from %s", name, source)
    entry = entry_path(name, paths, options)
    arrays = remember(entry, lambda: layout.read(paths, options))
    return dataset.assemble(arrays, options, source, seed)


def default_recipe(name: str) -> Any:
    """Return the recipe that is used when none is given.

    Examples
    --------
    >>> default_recipe("fsq-nyc").min_length
    30
    """
    info(name)
    return SyntheticRecipe() if name == "synthetic" else _DATASETS[name].recipe


def source_of(name: str, root: str | Path | None = None) -> Source | None:
    """Return the files that `load` would read, or None if the data set is not here."""
    info(name)
    if name == "synthetic":
        return Source("generated")
    found = find(_DATASETS[name], root)
    if found is None:
        return None
    layout, paths = found
    return Source(layout.form, paths, layout.subset, layout.note)


def _recipe(name: str, recipe: object) -> Any:
    default = default_recipe(name)
    if recipe is None:
        return default
    if isinstance(recipe, Mapping):
        known = [field.name for field in dataclasses.fields(default)]
        strange = [str(key) for key in recipe if key not in known]
        if strange:
            raise ConfigError(
                f"{name} has no option {', '.join(strange)}; it has {', '.join(known)}"
            )
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in recipe.items()}
        return dataclasses.replace(default, **values)
    if type(recipe) is not type(default):
        raise ConfigError(
            f"the recipe of {name} is a {type(recipe).__name__}; "
            f"it must be a {type(default).__name__} or a mapping"
        )
    return recipe
