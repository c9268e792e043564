"""Where something is to be written: refused before any work is done, not after."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from labelmem.errors import StorageError

__all__ = ["check_file", "check_free"]


def check_file(path: Path | None) -> None:
    """Refuse a target that cannot be a file; None is nowhere, and always possible."""
    if path is None:
        return
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a file to write to")
    if path.exists() and not os.access(path, os.W_OK):
        raise StorageError(f"{path} cannot be written; name another file, or allow it")
    _check_folder(path)


def check_free(out: Path) -> None:
    """Refuse a place for a model folder where something is already, or that cannot be."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StorageError(f"{out} exists already; name another folder, or remove it first")
    _check_folder(out)


def _check_folder(path: Path) -> None:
    """Try whether anything can be written beside ``path``: permissions alone do not tell."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise StorageError(f"the folder of {path} does not exist; make it first")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise StorageError(
            f"nothing can be written to the folder of {path}: {error.strerror or error}"
        ) from error
