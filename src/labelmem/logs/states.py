"""The states of all users and how far each file has come, in one database in the model folder.

A commit holds the states of some users and the mark up to which their predictions were written, so
that after a crash the two agree. A user who is forgotten is overwritten with zeros, and the file is
written anew, so that none of its bytes remain.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from labelmem.errors import CorruptFileError, FormatVersionError, StorageError

__all__ = ["FILE", "Kept", "Run", "States"]

FILE = "users.sqlite"
_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    id TEXT PRIMARY KEY, observed INTEGER, previous INTEGER, time REAL, passed INTEGER,
    own TEXT, checksum INTEGER, state BLOB
);
CREATE TABLE IF NOT EXISTS files (
    digest TEXT PRIMARY KEY, bytes INTEGER, row INTEGER, output TEXT, plan TEXT,
    done INTEGER, total INTEGER, written INTEGER, tally TEXT
);
"""


@dataclass(frozen=True)
class Kept:
    """What is kept of one user."""

    state: bytes
    own: Sequence[str]
    """Items that only this user's stream knows, in the order of their numbers."""
    observed: int
    """Events so far."""
    previous: int
    """The number of the latest item, -1 before the first."""
    time: float | None
    """When the latest event was."""
    passed: int = 0
    """Events at the front of the latest file that the user had already."""


@dataclass(frozen=True)
class Run:
    """How far a file has been taken in."""

    digest: str
    bytes: int
    row: int
    """Its last row."""
    output: str
    """Where its predictions are."""
    plan: str
    """How it was cut into pieces; another plan cannot go on with it."""
    done: int
    """Pieces that are finished."""
    total: int
    written: int
    """Bytes of ``output`` that belong to finished pieces."""
    tally: Any
    """What was added up over them."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.done == self.total


class States:
    """Users and files of one model folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, States(Path(folder)) as states:
    ...     run = states.begin(Run("ab12", 10, 1, "out.jsonl", "plan", 0, 1, 0, []))
    ...     states.commit(run, 64, [1.0], {"ann": Kept(b"state", ["emu"], 1, 2, None)})
    ...     states.get(["ann", "bob"]), states.run("ab12").written
    ({'ann': Kept(state=b'state', own=['emu'], observed=1, previous=2, time=None, passed=0)}, 64)
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        with self._told():
            self._base = sqlite3.connect(self.path, timeout=10, isolation_level=None)
            version = self._base.execute("PRAGMA user_version").fetchone()[0]
            if version > _FORMAT:
                raise FormatVersionError(
                    f"{self.path} has format {version}, this labelmem reads up to {_FORMAT}; "
                    "update labelmem to read it"
                )
            # Deleted content is overwritten, and the journal of a transaction ends with it.
            self._base.execute("PRAGMA secure_delete = ON")
            self._base.execute("PRAGMA journal_mode = DELETE")
            self._base.execute("PRAGMA synchronous = FULL")
            if version < _FORMAT:
                self._base.executescript(_SCHEMA)
                self._base.execute(f"PRAGMA user_version = {_FORMAT}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def get(self, users: Iterable[str]) -> dict[str, Kept]:
        """What is kept of these users; those who are new are not in it."""
        found = {}
        with self._told():
            for user in users:
                row = self._base.execute("SELECT * FROM users WHERE id = ?", (user,)).fetchone()
                if row is not None:
                    found[user] = self._kept(row)
        return found

    def _kept(self, row: Sequence[Any]) -> Kept:
        _, observed, previous, time, passed, own, checksum, state = row
        if zlib.crc32(state) != checksum:
            raise CorruptFileError(
                f"{self.path}: a user's state does not match its checksum; use a backup, or forget "
                "that user"
            )
        return Kept(state, json.loads(own), observed, previous, time, passed)

    def users(self) -> int:
        """How many there are."""
        with self._told():
            return int(self._base.execute("SELECT count(*) FROM users").fetchone()[0])

    def run(self, digest: str) -> Run | None:
        """How far a file has come."""
        return next((run for run in self.runs() if run.digest == digest), None)

    def runs(self) -> list[Run]:
        """All files that were ever begun, in that order."""
        with self._told():
            rows = self._base.execute("SELECT * FROM files ORDER BY rowid").fetchall()
        return [Run(*(*row[:-1], json.loads(row[-1]))) for row in rows]

    def begin(self, run: Run) -> Run:
        """Note that a file is being taken in."""
        values = (*list(vars(run).values())[:-1], json.dumps(run.tally))
        with self._transaction() as base:
            base.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        return run

    def abandon(self) -> int:
        """Give up what was begun and not finished, as far as it has come; how many files."""
        with self._transaction() as base:
            return base.execute("UPDATE files SET total = done WHERE done < total").rowcount

    def commit(self, run: Run, written: int, tally: Any, users: Mapping[str, Kept]) -> None:
        """Finish a piece: states, the mark in the output and what was added up, or none of them."""
        with self._transaction() as base:
            changed = base.execute(
                "UPDATE files SET done = done + 1, written = ?, tally = ? "
                "WHERE digest = ? AND done = ?",
                (written, json.dumps(tally), run.digest, run.done),
            ).rowcount
            if changed != 1:
                raise StorageError(
                    f"{self.path}: another process is taking in the same file; let it finish"
                )
            base.executemany(
                "INSERT OR REPLACE INTO users VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [_row(user, kept) for user, kept in users.items()],
            )

    def forget(self, user: str) -> Kept | None:
        """Remove a user so that no byte of theirs stays in the file; what was removed."""
        kept = self.get([user]).get(user)
        if kept is not None:
            with self._transaction() as base:
                base.execute("DELETE FROM users WHERE id = ?", (user,))
            with self._told():
                self._base.execute("VACUUM")
        return kept

    def mentions(self, text: str) -> bool:
        """Whether a text is part of the name of any user, or of an item of their own."""
        asked = "SELECT 1 FROM users WHERE instr(id, ?) OR instr(own, ?) LIMIT 1"
        with self._told():
            return self._base.execute(asked, (text, text)).fetchone() is not None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._told():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the database in our words."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StorageError(
                    f"{self.path}: {error}; is it writable, and not in use?"
                ) from error
            raise CorruptFileError(f"{self.path} is damaged ({error}); use a backup") from error


def _row(user: str, kept: Kept) -> tuple[Any, ...]:
    own, checksum = json.dumps(list(kept.own), ensure_ascii=False), zlib.crc32(kept.state)
    numbers = (kept.observed, kept.previous, kept.time, kept.passed)
    return (user, *numbers, own, checksum, kept.state)
