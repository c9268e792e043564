"""Take in a log: predictions to a file, states to the model folder, both or neither.

A log is cut into pieces. After each piece its predictions are appended to the output and forced to
disk; then one transaction stores the users' states and how long the output is. Whoever is killed in
between leaves an output that is too long: the next call cuts it back to what was committed and goes
on with the next piece. So nothing is lost that was committed, and nothing happens twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from labelmem.errors import StorageError
from labelmem.logs.fit_command import digest_of
from labelmem.logs.lanes import Integers, Lane, Piece, plan
from labelmem.logs.log import Log
from labelmem.logs.replaying import Replay, Source, empty_tally
from labelmem.logs.states import Run, States
from labelmem.progress import progress_bar

__all__ = ["ABREAST", "STEPS", "Adaptation", "earlier_rows"]

ABREAST = 256
"""Users side by side."""
STEPS = 256
"""The most events of each of them between two commits."""


def earlier_rows(path: Path, states: States) -> int:
    """How many rows at the front of a file were taken in as a file of their own, before it grew."""
    size = path.stat().st_size
    for run in sorted(states.runs(), key=lambda run: -run.bytes):
        if run.finished and 0 < run.bytes < size and _ends_a_line(path, run.bytes):
            if digest_of(path, run.bytes) == run.digest:
                return run.row
    return 0


def _ends_a_line(path: Path, size: int) -> bool:
    with path.open("rb") as stream:
        stream.seek(size - 1)
        return stream.read(1) == b"\n"


class Adaptation:
    """One log on its way into the states of a model folder.

    Parameters
    ----------
    digest
        Of the file that the log was read from.
    output
        Where predictions go; None for nowhere.
    """

    def __init__(
        self,
        states: States,
        source: Source,
        log: Log,
        digest: str,
        output: Path | None,
        abreast: int = ABREAST,
        steps: int = STEPS,
    ) -> None:
        self.states, self.source, self.log = states, source, log
        self.pieces = plan(log, abreast, steps)
        self.output = output
        self.run = self._begun(digest, f"{abreast} users x {steps} steps, {len(log)} events")
        self.resumed = self.run.done > 0

    def _begun(self, digest: str, plan: str) -> Run:
        target = "" if self.output is None else str(self.output.absolute())
        run = self.states.run(digest)
        if run is None:
            for other in self.states.runs():
                # A user in the middle of one file must not meet another: their order would be lost.
                if not other.finished:
                    raise StorageError(
                        f"another file was begun and not finished ({other.done} of {other.total} "
                        f"pieces, --out {other.output or '(none)'}); make that call again first, "
                        "or give it up with --abandon"
                    )
            if self.output is not None:  # before the run is noted, in case it cannot be
                _claim(self.output)
            size = self.log.path.stat().st_size
            last = int(self.log.row.max(initial=0))
            total = len(self.pieces)
            return self.states.begin(
                Run(digest, size, last, target, plan, 0, total, 0, empty_tally())
            )
        if (run.output, run.plan) != (target, plan):
            raise StorageError(
                f"{self.log.path} was begun with --out {run.output or '(none)'} and cut into "
                f"{run.plan}, now it is {target or '(none)'} and {plan}; call it as it was begun"
            )
        return run

    def go(self, show: bool | None = None) -> None:
        """Do all pieces that are left, each to its commit."""
        known = self.source.known(self.log.items)
        with self._opened() as file, progress_bar("adapt", len(self.pieces), show) as report:
            report(self.run.done)
            for piece in self.pieces[self.run.done :]:
                # Every piece starts from what is stored, whether or not this process stored it: so
                # a run that was interrupted cannot differ from one that was not.
                replay = self._replay(piece, known)
                tally = [list(bucket) for bucket in self.run.tally]
                lines = replay.run(tally)
                written = _append(file, lines) if file is not None else 0
                self.states.commit(self.run, written, tally, replay.kept())
                self.run = replace(self.run, done=self.run.done + 1, written=written, tally=tally)
                report()

    def _replay(self, piece: Piece, known: Integers) -> Replay:
        source, log, users = self.source, self.log, piece.users
        kept = self.states.get(log.users[user] for user in users)
        lane = Lane(log, piece, known, len(source.names), kept)
        late = sum(lane.passed)
        if late and not piece.first:
            whose = [user for user, n in zip(users, lane.passed, strict=True) if n]
            first = min(int(log.row[log.offsets[user]]) for user in whose)
            log.problems.add("late", first, rows=late)
            log.problems.settle()
        return Replay(source, lane)

    def _opened(self) -> Any:
        return nullcontext() if self.output is None else _output(self.output, self.run.written)


def _claim(path: Path) -> None:
    """Make an output, still empty; nothing that exists is written over."""
    if path.exists() and (not path.is_file() or path.stat().st_size):
        raise StorageError(f"{path} exists already; name another file, or remove it")
    _open(path).close()


def _open(path: Path) -> IO[bytes]:
    try:
        path.touch()
        return path.open("r+b")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _output(path: Path, written: int) -> Iterator[IO[bytes]]:
    """The output, cut back to what was committed."""
    with _open(path) as file:
        if os.fstat(file.fileno()).st_size < written:
            raise StorageError(
                f"{path} is shorter than the {written} bytes that were committed to it; put it "
                "back as it was"
            )
        file.truncate(written)
        file.seek(written)
        yield file


def _append(file: IO[bytes], lines: Sequence[str]) -> int:
    """Write lines through to the disk; where the file ends now."""
    file.write("".join(line + "\n" for line in lines).encode())
    file.flush()
    os.fsync(file.fileno())
    return file.tell()
