"""Download one file so that an interruption costs nothing and an altered file is noticed.

What has come so far lies in ``NAME.part`` beside the target, and the server's mark of that version
(``ETag`` or ``Last-Modified``) in ``NAME.part.version``. The next attempt asks for the rest of that
very version; a server that has another one, or cannot resume, sends everything again. The file
takes its final name only when it is complete and its checksum, if one is known, is right.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from labelmem.errors import ConfigError, DataError, MissingDataError

__all__ = ["Progress", "download", "file_digest"]

Progress = Callable[[int, int], None]
"""Called with the bytes here so far and the bytes in all, 0 when unknown."""

CHUNK = 1 << 16
NETWORK_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


@dataclass(frozen=True)
class Expected:
    """Checksums a file must have; an empty one is not known."""

    sha256: str = ""
    md5: str = ""

    def check(self, path: Path) -> None:
        """Raise `DataError` if the file is another one."""
        for kind, wanted in (("sha256", self.sha256), ("md5", self.md5)):
            if wanted and (seen := file_digest(path, kind)) != wanted.lower():
                raise DataError(
                    f"{path}: its {kind} is {seen}, expected {wanted}. The file was altered or "
                    "the publisher replaced it: delete it and fetch again, and if that does not "
                    "help get it by hand"
                )


def download(
    url: str,
    target: Path,
    *,
    sha256: str = "",
    md5: str = "",
    progress: Progress | None = None,
    attempts: int = 5,
    pause: float = 1.0,
    timeout: float = 30.0,
) -> str:
    """Download ``url`` to ``target``, going on where an earlier attempt ended.

    Parameters
    ----------
    url : an http or https address.
    target : the file to make; if it is there already, only its checksum is looked at.
    sha256, md5 : checksums to insist on; empty for none.
    progress : told of every piece that has come.
    attempts : how often to go on after the connection broke, before giving up.
    pause : seconds before the second attempt, doubled for each further one.
    timeout : seconds of silence that count as a broken connection.

    Returns
    -------
    The SHA-256 of the file.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"the address is {url!r}; it must start with http:// or https://")
    expected = Expected(sha256, md5)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Part(target)
        with part.locked():
            _insist(url, part, progress or _silent, attempts, pause, timeout)
            part.finish(expected)
    else:
        expected.check(target)
    return file_digest(target)


def file_digest(path: Path, kind: str = "sha256") -> str:
    """Return a checksum of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, kind).hexdigest()


class Part:
    """What has come so far of a file."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self._version = target.with_name(target.name + ".part.version")

    def size(self) -> int:
        """Return the number of bytes that have come."""
        return self.path.stat().st_size if self.path.exists() else 0

    def version(self) -> str:
        """Return the server's mark of the version they belong to; empty if it gave none."""
        return self._version.read_text("utf-8") if self._version.exists() else ""

    def restart(self, version: str) -> None:
        """Forget what has come and begin another version."""
        self.path.write_bytes(b"")
        self._version.write_text(version, "utf-8")

    def finish(self, expected: Expected) -> None:
        """Give the file its name if it is the right one; otherwise remove it."""
        try:
            expected.check(self.path)
        except DataError:
            self.path.unlink()
            raise
        finally:
            self._version.unlink(missing_ok=True)
        os.replace(self.path, self.target)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from adding to the same file, where the system can."""
        try:
            import fcntl
        except ImportError:  # not every system has it
            yield
            return
        with self.path.open("ab") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise DataError(f"{self.target} is being downloaded by another process") from error
            try:
                yield
            finally:
                if not self.size():
                    self.path.unlink(missing_ok=True)


def _insist(
    url: str, part: Part, progress: Progress, attempts: int, pause: float, timeout: float
) -> None:
    for attempt in range(attempts):
        try:
            _receive(url, part, progress, timeout)
            return
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise _gave_up(url, part, error) from error
            last: Exception = error
        except NETWORK_ERRORS as error:
            last = error
        if attempt + 1 < attempts:
            time.sleep(pause * 2**attempt)
    raise _gave_up(url, part, last) from last


def _receive(url: str, part: Part, progress: Progress, timeout: float) -> None:
    """Ask for what is missing and write it down."""
    have, version = part.size(), part.version()
    request = urllib.request.Request(url, headers={"User-Agent": "labelmem"})
    if have and version:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            if error.headers.get("Content-Range") == f"bytes */{have}":
                return
            part.restart("")
            raise ConnectionError("the server has another version") from error
        raise
    with response:
        if response.status != 206:
            part.restart(_version_of(response))
        _append(response, part, progress)


def _append(response: http.client.HTTPResponse, part: Part, progress: Progress) -> None:
    done = part.size()
    length = response.headers.get("Content-Length")
    total = done + int(length) if length else 0
    progress(done, total)
    with part.path.open("ab") as stream:
        for piece in _pieces(response):
            stream.write(piece)
            done += len(piece)
            progress(done, total)
    if total and done != total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _pieces(stream: IO[bytes] | http.client.HTTPResponse) -> Iterator[bytes]:
    while piece := stream.read(CHUNK):
        yield piece


def _version_of(response: http.client.HTTPResponse) -> str:
    """Return a mark that the server will recognise; a weak ETag does not promise equal bytes."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _gave_up(url: str, part: Part, error: Exception) -> MissingDataError:
    kept = f"{part.size():,} bytes are kept in {part.path} and the next attempt goes on from there"
    hint = kept if part.size() else "Is the address still right, and is this computer online?"
    return MissingDataError(f"{url} could not be downloaded: {error}. {hint}")


def _silent(done: int, total: int) -> None:
    """Tell nobody."""
