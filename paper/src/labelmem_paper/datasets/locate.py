"""Find a data set's files on this computer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from labelmem.errors import MissingDataError
from labelmem_paper.datasets.layout import Dataset, Layout

__all__ = ["cache_folder", "download_folder", "find", "locate", "search_folders"]

VARIABLE = "LABELMEM_DATA"

Recipe = TypeVar("Recipe")
Result = TypeVar("Result")


def cache_folder() -> Path:
    """Return the folder that keeps downloads and prepared data: ``~/.cache/labelmem``.

    ``XDG_CACHE_HOME`` moves it, as it does for other programs.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "labelmem"


def download_folder(name: str) -> Path:
    """Return where the downloaded files of a data set go."""
    return cache_folder() / "data" / name


def search_folders(root: str | Path | None = None) -> list[Path]:
    """Return the folders to look in, in order.

    Parameters
    ----------
    root : a folder, or several joined as in ``PATH``; None takes ``LABELMEM_DATA``. The folder of
        downloads comes last in either case.

    Examples
    --------
    >>> search_folders("mine")[0].name
    'mine'
    """
    given = os.environ.get(VARIABLE, "") if root is None else str(root)
    named = [Path(folder).expanduser() for folder in given.split(os.pathsep) if folder]
    return [*named, cache_folder() / "data"]


def find(
    dataset: Dataset[Recipe, Result], root: str | Path | None = None
) -> tuple[Layout[Recipe], tuple[Path, ...]] | None:
    """Return the layout and the files of a data set, or None if it is not here.

    The first folder that holds the data set in any layout decides; in it, raw files are preferred.
    """
    for folder in search_folders(root):
        for layout in dataset.layouts:
            for base in _bases(folder, dataset.name, layout):
                paths = tuple(base / file for file in layout.files)
                if all(p.is_dir() if layout.folder else p.is_file() for p in paths):
                    return layout, paths
    return None


def locate(
    dataset: Dataset[Recipe, Result], root: str | Path | None = None
) -> tuple[Layout[Recipe], tuple[Path, ...]]:
    """Return what `find` does, or raise `MissingDataError` telling what was looked for."""
    found = find(dataset, root)
    if found is None:
        wanted = "; or ".join(" and ".join(layout.files) for layout in dataset.layouts)
        places = ", ".join(str(folder) for folder in search_folders(root))
        raise MissingDataError(
            f"{dataset.name} is not on this computer: no {wanted} in {places} (or a folder "
            f"{dataset.name} there). Run `labelmem-paper data fetch {dataset.name}`, or set "
            f"{VARIABLE} to the folder that holds it"
        )
    return found


def _bases(folder: Path, name: str, layout: Layout[Recipe]) -> Iterable[Path]:
    yield folder / name
    if not layout.common_names:
        yield folder
