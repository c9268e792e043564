"""Open a data file however it is packed, and read it in blocks of whole lines."""

from __future__ import annotations

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from labelmem.errors import DataError

__all__ = ["damaged", "open_binary", "read_all", "read_blocks", "unpacking"]

BLOCK = 1 << 24


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Turn the many errors of a damaged archive into one that names the file."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, str(error) or type(error).__name__) from error


@contextmanager
def open_binary(path: Path, member: str = "") -> Iterator[IO[bytes]]:
    """Open ``path`` for reading bytes, unpacking ``.gz``, ``.xz`` and ``.zip`` on the way.

    Parameters
    ----------
    path : the file.
    member : for a ``.zip``, the end of the wanted member's name.
    """
    with unpacking(path):
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                yield cast(IO[bytes], packed)
        elif path.suffix == ".xz":
            with lzma.open(path) as squeezed:
                yield squeezed
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_find(archive, member)) as inner:
                yield inner
        else:
            with path.open("rb") as plain:
                yield plain


def read_all(path: Path, member: str = "") -> bytes:
    """Return the whole unpacked content."""
    with open_binary(path, member) as stream:
        return stream.read()


def read_blocks(path: Path, member: str = "", size: int = BLOCK) -> Iterator[bytes]:
    r"""Yield the unpacked content in blocks of about ``size`` bytes, each ending with a line.

    A missing last line break is supplied, so that every line of every block ends the same way.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "few.txt")
    ...     _ = path.write_bytes(b"ab\ncd\nef")
    ...     list(read_blocks(path, size=4))
    [b'ab\n', b'cd\n', b'ef\n']
    """
    with open_binary(path, member) as stream:
        rest = b""
        while chunk := stream.read(size):
            lines, found, tail = chunk.rpartition(b"\n")
            if found:
                yield rest + lines + found
                rest = tail
            else:
                rest += chunk
    if rest:
        yield rest + b"\n"


def damaged(path: Path | str, why: object) -> DataError:
    """Describe a file whose packing is broken: cut off while downloading, or altered since."""
    return DataError(
        f"{path} cannot be unpacked ({why}). It was probably cut off while it was copied: "
        "delete it and get it again"
    )


def _find(archive: zipfile.ZipFile, member: str) -> str:
    for name in archive.namelist():
        if name == member or name.endswith("/" + member):
            return name
    raise DataError(
        f"{archive.filename} holds no {member}; it holds {', '.join(archive.namelist()[:5])}. "
        "Is it the archive its publisher offers?"
    )
