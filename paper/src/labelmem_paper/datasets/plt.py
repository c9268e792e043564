"""Read the ``.plt`` trajectory files of Geolife, from a folder or from the published zip."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError
from labelmem_paper.datasets.delimited import Table
from labelmem_paper.datasets.opening import unpacking
from labelmem_paper.datasets.problems import malformed
from labelmem_paper.datasets.timestamps import dates_and_times

__all__ = ["Tracks", "parse_plt", "read_tracks"]

HEADER_LINES = 6
COLUMNS = 7

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tracks:
    """All fixes of one user, file after file."""

    user: int
    time: Integers
    """Unix seconds."""
    lat_e6: Integers
    lon_e6: Integers
    """Degrees times a million."""
    is_copy: npt.NDArray[np.bool_]
    """Whether an earlier file, perhaps of another user, holds the same bytes as the fix's file."""


@dataclass(frozen=True)
class _File:
    user: int
    name: str
    content: bytes


def read_tracks(path: Path) -> Iterator[Tracks]:
    """Yield the fixes of each user from all ``NNN/Trajectory/*.plt`` under a folder or in a zip."""
    seen: set[bytes] = set()
    for user, group in groupby(_files(path), key=lambda file: file.user):
        files = list(group)
        copies = []
        for file in files:
            digest = hashlib.sha256(file.content).digest()
            copies.append(digest in seen)
            seen.add(digest)
        yield _parse_user(user, files, copies)
    if not seen:
        raise DataError(
            f"{path} holds no NNN/Trajectory/*.plt; "
            "it should be the folder Data of 'Geolife Trajectories 1.3'"
        )


def parse_plt(content: bytes, name: str) -> tuple[Integers, Integers, Integers]:
    r"""Parse one file: six header lines, then latitude, longitude, 0, feet, days, date, time.

    Returns
    -------
    Unix seconds, and latitudes and longitudes times a million.

    Examples
    --------
    >>> line = b"39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\n"
    >>> parse_plt(b"header\n" * 6 + line, "000/one.plt")
    (array([1224730384]), array([39984702]), array([116318417]))
    """
    return _parse_body(_body(content, name), name)


def _parse_user(user: int, files: list[_File], copies: list[bool]) -> Tracks:
    bodies = [_body(file.content, file.name) for file in files]
    try:
        time, lat, lon = _parse_body(b"".join(bodies), "")
    except DataError:
        # Parsing thousands of small files at once is fast but does not tell which is bad.
        for file in files:
            parse_plt(file.content, file.name)
        raise
    is_copy = np.repeat(copies, [body.count(b"\n") for body in bodies])
    return Tracks(user, time, lat, lon, is_copy)


def _body(content: bytes, name: str) -> bytes:
    """Return what follows the header, with the last line ended."""
    parts = content.split(b"\n", HEADER_LINES)
    if len(parts) <= HEADER_LINES:
        raise malformed(name, len(parts), "the end of the file", f"{HEADER_LINES} header lines")
    return parts[-1] + b"\n" if parts[-1] and not parts[-1].endswith(b"\n") else parts[-1]


def _parse_body(body: bytes, name: str) -> tuple[Integers, Integers, Integers]:
    table = Table(body, columns=COLUMNS, path=name, delimiter=",", first_line=HEADER_LINES + 1)
    time = dates_and_times(table, 5, 6)
    lat, lon = (np.rint(table.floats(column) * 1e6).astype(np.int64) for column in (0, 1))
    return time, lat, lon


def _files(path: Path) -> Iterator[_File]:
    if path.is_dir():
        found = [file.as_posix() for file in path.glob("*/Trajectory/*.plt")]
        for name, user in _ordered(found):
            yield _File(user, name, Path(name).read_bytes())
    else:
        with unpacking(path), zipfile.ZipFile(path) as archive:
            for name, user in _ordered(archive.namelist()):
                yield _File(user, f"{path}:{name}", archive.read(name))


def _ordered(names: list[str]) -> list[tuple[str, int]]:
    """Keep the trajectory files, with their users, by user and then file name."""
    found = []
    for name in names:
        user, folder, file = ("", "", *name.split("/"))[-3:]
        if folder == "Trajectory" and user.isdigit() and file.endswith(".plt"):
            found.append((int(user), file, name))
    return [(name, user) for user, _, name in sorted(found)]
