"""Read the ``.plt`` trajectory files of Geolife, from a folder or from the published zip."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from labelmem.data.delimited import Table
from labelmem.data.opening import unpacking
from labelmem.data.problems import malformed
from labelmem.data.timestamps import dates_and_times
from labelmem.errors import DataError

__all__ = ["Track", "read_tracks", "tracks_by_user"]

HEADER_LINES = 6
COLUMNS = 7


@dataclass(frozen=True)
class Track:
    """One trajectory file: a user's fixes in time."""

    user: int
    time: npt.NDArray[np.int64]
    """Unix seconds."""
    lat_e6: npt.NDArray[np.int64]
    lon_e6: npt.NDArray[np.int64]
    """Degrees times a million."""
    is_copy: bool
    """Whether an earlier file, perhaps of another user, holds the same bytes."""


def tracks_by_user(path: Path) -> Iterator[tuple[int, list[Track]]]:
    """Yield each user with all of the user's trajectories, in the order of the file names."""
    for user, tracks in groupby(read_tracks(path), key=lambda track: track.user):
        yield user, list(tracks)


def read_tracks(path: Path) -> Iterator[Track]:
    """Yield every ``NNN/Trajectory/*.plt`` under a folder or in a zip, by user and name."""
    seen: set[bytes] = set()
    for user, name, content in _contents(path):
        digest = hashlib.sha256(content).digest()
        track = parse_plt(content, name, user, is_copy=digest in seen)
        seen.add(digest)
        yield track
    if not seen:
        raise DataError(
            f"{path} holds no NNN/Trajectory/*.plt; "
            "it should be the folder Data of 'Geolife Trajectories 1.3'"
        )


def parse_plt(content: bytes, name: str, user: int, *, is_copy: bool = False) -> Track:
    r"""Parse one file: six header lines, then latitude, longitude, 0, feet, days, date, time.

    Examples
    --------
    >>> line = b"39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\n"
    >>> track = parse_plt(b"header\n" * 6 + line, "000/one.plt", user=0)
    >>> track.time, track.lat_e6
    (array([1224730384]), array([39984702]))
    """
    parts = content.split(b"\n", HEADER_LINES)
    if len(parts) <= HEADER_LINES:
        raise malformed(name, len(parts), "the end of the file", f"{HEADER_LINES} header lines")
    body = parts[-1] if parts[-1].endswith(b"\n") or not parts[-1] else parts[-1] + b"\n"
    table = Table(body, columns=COLUMNS, path=name, delimiter=",", first_line=HEADER_LINES + 1)
    time = dates_and_times(table, 5, 6)
    lat, lon = (np.rint(table.floats(column) * 1e6).astype(np.int64) for column in (0, 1))
    return Track(user, time, lat, lon, is_copy)


def _contents(path: Path) -> Iterator[tuple[int, str, bytes]]:
    if path.is_dir():
        found = {str(file.relative_to(path).as_posix()): file for file in path.glob("*/*/*.plt")}
        for name, user in _ordered(list(found)):
            yield user, str(found[name]), found[name].read_bytes()
    else:
        with unpacking(path), zipfile.ZipFile(path) as archive:
            for name, user in _ordered(archive.namelist()):
                yield user, f"{path}:{name}", archive.read(name)


def _ordered(names: list[str]) -> list[tuple[str, int]]:
    """Keep the trajectory files, with their users, by user and then file name."""
    found = []
    for name in names:
        parts = PurePosixPath(name).parts
        if len(parts) >= 3 and parts[-2] == "Trajectory" and parts[-1].endswith(".plt"):
            if parts[-3].isdigit():
                found.append((int(parts[-3]), parts[-1], name))
    return [(name, user) for user, _, name in sorted(found)]
