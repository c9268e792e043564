"""Keep prepared data so that a recipe is applied to a file only once.

An entry's name is a hash of what the files are and of all options, so nothing is ever out of date;
an entry that cannot be read is made again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.datasets.locate import cache_folder

__all__ = ["entry_path", "fingerprint", "remember"]

FORMAT = 1
"""Raised whenever the same file and recipe would be prepared differently."""

DAMAGE = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""All that reading a damaged archive can raise; TypeError when it is a single array."""

WHOLE = 1 << 25
SAMPLE = 1 << 20

logger = logging.getLogger(__name__)


def fingerprint(path: Path) -> str:
    """Tell one state of a file or folder from another.

    Files up to 32 MiB are hashed whole. Of larger ones the size, the time of the last change and
    both ends are taken; of a folder, names, sizes and times of all its files.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for line in _listing(str(path)):
            digest.update(line.encode())
    elif path.stat().st_size <= WHOLE:
        digest.update(path.read_bytes())
    else:
        digest.update(_state(path.stat()).encode())
        with path.open("rb") as stream:
            digest.update(stream.read(SAMPLE))
            stream.seek(-SAMPLE, os.SEEK_END)
            digest.update(stream.read(SAMPLE))
    return digest.hexdigest()


def entry_path(name: str, paths: tuple[Path, ...], recipe: object) -> Path:
    """Return where the result of a recipe on these files is kept."""
    options = dataclasses.asdict(recipe) if dataclasses.is_dataclass(recipe) else repr(recipe)  # type: ignore[arg-type]
    files = [(path.name, fingerprint(path)) for path in paths]
    text = json.dumps([FORMAT, name, files, type(recipe).__name__, options], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()
    return cache_folder() / "prepared" / f"{name}-{key[:32]}.npz"


def remember(entry: Path, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays kept under ``entry``, or make and keep them."""
    try:
        return _read(entry)
    except FileNotFoundError:
        pass
    except DAMAGE as error:
        logger.warning("%s is damaged (%s) and is made again", entry, error)
    arrays = make()
    try:
        _write(entry, arrays)
    except OSError as error:
        logger.warning("the prepared data could not be kept in %s: %s", entry, error)
    return arrays


def _read(entry: Path) -> Arrays:
    # Opened here because numpy leaves the file open when it is no archive.
    with entry.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        if not archive.files:
            raise ValueError("it is empty")
        return {name: archive[name] for name in archive.files}


def _write(entry: Path, arrays: Arrays) -> None:
    """Write beside the entry and then rename, so that nobody ever sees half of it."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=entry.parent, prefix=entry.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, entry)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _listing(folder: str, within: str = "") -> Iterator[str]:
    """Describe every file below a folder; thousands of them, so without a Path object for each."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        name = f"{within}/{entry.name}"
        if entry.is_dir():
            yield from _listing(entry.path, name)
        else:
            yield f"{name}\0{_state(entry.stat())}\0"


def _state(state: os.stat_result) -> str:
    return f"{state.st_size} {state.st_mtime_ns}"
