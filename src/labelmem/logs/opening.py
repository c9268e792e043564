"""Open a data file, packed or not, with errors that say what is the matter."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from labelmem.errors import DataError

__all__ = ["opened"]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked where its name ends in ``.gz`` or ``.xz``."""
    if not path.exists():
        raise DataError(f"there is no file {path}; check the path")
    if path.is_dir():
        raise DataError(f"{path} is a folder; expected a CSV, JSON Lines or Parquet file")
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
    try:
        with openers.get(path.suffix, open)(path, "rb") as stream:
            yield stream
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} cannot be unpacked ({error}). It was probably cut off while it was copied: "
            "delete it and get it again"
        ) from error
