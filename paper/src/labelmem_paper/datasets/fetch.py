"""Fetch a data set from its publisher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labelmem.errors import MissingDataError
from labelmem_paper.datasets.download import download
from labelmem_paper.datasets.locate import cache_folder, download_folder
from labelmem_paper.datasets.registry import Info, RemoteFile, info

__all__ = ["Fetched", "fetch"]

FileProgress = Callable[[str, int, int], None]
"""Called with a file's name, its bytes here so far, and its bytes in all (0: unknown)."""


@dataclass(frozen=True)
class Fetched:
    """A file that is here now."""

    path: Path
    sha256: str
    pinned: bool
    """Whether its checksum was known before and has been checked."""


def fetch(
    name: str, folder: Path | None = None, progress: FileProgress | None = None
) -> list[Fetched]:
    """Download the files of a data set; what is here already is only checked.

    Parameters
    ----------
    name : the data set.
    folder : where to put the files; None for the folder of downloads, where `load` finds them.
    progress : told of every piece that has come.
    """
    facts = info(name)
    if facts.manual:
        raise MissingDataError(
            f"{name} cannot be fetched by a program. "
            f"{facts.manual.format(folder=folder or download_folder(name))} "
            f"Home page: {facts.homepage}"
        )
    return [_fetch_file(facts, file, folder, progress) for file in facts.files]


def _fetch_file(
    facts: Info, file: RemoteFile, folder: Path | None, progress: FileProgress | None
) -> Fetched:
    # A file that serves two data sets lies in the common folder, so that it is fetched once.
    own = cache_folder() / "data" if file.shared else download_folder(facts.name)
    target = (folder or own) / file.name

    def tell(done: int, total: int) -> None:
        if progress:
            progress(file.name, done, total or file.bytes)

    digest = download(file.url, target, sha256=file.sha256, md5=file.md5, progress=tell)
    return Fetched(target, digest, pinned=bool(file.sha256 or file.md5))
