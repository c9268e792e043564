"""Results as one JSON line per finished run, safe to append from several processes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelmem.errors import DataError

__all__ = ["Record", "Records", "digest"]

Record = dict[str, Any]

IDENTITY = ("table", "dataset", "method", "seed", "size", "config")
"""What makes two runs the same run."""


def digest(value: Any) -> str:
    """A short name for anything JSON can express, the same for equal values.

    Examples
    --------
    >>> digest({"b": 1, "a": [2]}) == digest({"a": [2], "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Records:
    """The records of one table, a file of JSON lines.

    A line is appended under a lock, in one write, and synced; a line cut short by a crash is mended
    by the next append and passed over when reading.

    Examples
    --------
    >>> import tempfile
    >>> records = Records(Path(tempfile.mkdtemp()) / "toy.jsonl")
    >>> run = {"table": "toy", "dataset": "d", "method": "m", "seed": 0, "size": "smoke",
    ...        "config": {}}
    >>> records.append(run | {"metrics": {"mrr": 0.5}})
    >>> records.find(run)["metrics"]
    {'mrr': 0.5}
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Record]:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(keepends=True), start=1):
            if not line.endswith("\n") or not line.strip():
                continue  # being written, or cut short
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{self.path}, line {number}, is not JSON ({error}); remove the line and run "
                    "its experiment again"
                ) from None

    def find(self, run: Record) -> Record | None:
        """The record of a run with the same identity, if it has finished."""
        wanted = identity(run)
        return next((record for record in self if identity(record) == wanted), None)

    def append(self, record: Record) -> None:
        """Add a finished run, unless another process has just added the same one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_suffix(".lock")):
            if self.find(record) is not None:
                return
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                self._mend(descriptor)
                os.write(descriptor, (json.dumps(record, sort_keys=True) + "\n").encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _mend(self, descriptor: int) -> None:
        """Cut off a last line that a crash left without its end."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(descriptor, whole)


def identity(run: Record) -> Record:
    """The part of a record that says which run it was."""
    return {name: json.loads(json.dumps(run[name])) for name in IDENTITY}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that the operating system gives back when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Try to take a lock; False where another process is at work on the same thing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
