"""What ``labelmem adapt`` does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from labelmem.logs.adapting import ABREAST, STEPS, Adaptation, earlier_rows
from labelmem.logs.fit_command import digest_of
from labelmem.logs.folder import Fitted, load_fitted
from labelmem.logs.log import Log, read_log
from labelmem.logs.opening import opened
from labelmem.logs.problems import Policy
from labelmem.logs.replaying import Source
from labelmem.logs.rows import Columns
from labelmem.logs.scores import COLUMNS, figures_of
from labelmem.logs.states import Run, States
from labelmem.logs.summary import summary_of
from labelmem.logs.vocabulary import tokens_of
from labelmem.logs.words import counted

__all__ = ["adapt_log", "source_of", "taken_in", "taken_in_before"]


def source_of(fitted: Fitted, top: int) -> Source:
    """A fitted model as what predicts: it is fed the item before."""
    labels, adapter = len(fitted.vocabulary), fitted.adapter
    return Source(
        adapter,
        fitted.vocabulary.names,
        fitted.vocabulary.numbers,
        lambda events, previous: tokens_of(previous, labels).to(adapter.device),
        top,
    )


def adapt_log(
    folder: Path,
    path: Path,
    output: Path | None,
    *,
    columns: Columns | None = None,
    policy: Policy = "stop",
    top: int = 5,
    device: str = "cpu",
    abreast: int = ABREAST,
    steps: int = STEPS,
    abandon: bool = False,
    tell: Callable[[str], None] = lambda line: None,
    show: bool | None = None,
) -> dict[str, Any]:
    """Predict and learn every event of a log; how it went.

    The users' states are continued from where they ended and stored in the model folder. A file
    that was taken in before is not taken in again; of one that has grown since, the new rows are.

    Parameters
    ----------
    output
        Where predictions go, one JSON object in each line; None for nowhere.
    columns
        None takes those that the model was fitted with.
    abandon
        Whether files that were begun and not finished are given up, as far as they have come.
    """
    fitted = load_fitted(folder, device)
    with opened(path):  # says what is the matter if it is not there
        digest = digest_of(path)
    with States(folder) as states:
        if (before := taken_in_before(states, path, digest, abandon, tell)) is not None:
            return before
        after = earlier_rows(path, states)
        if after:
            tell(f"{path} has grown since it was taken in; going on after row {after:,}")
        log = read_log(path, columns or fitted.columns, policy, after)
        for line in [*summary_of(log).lines(), *log.problems.sentences()]:
            tell(line)
        users = states.users()
        work = Adaptation(states, source_of(fitted, top), log, digest, output, abreast, steps)
        if work.resumed:
            tell(f"going on after piece {work.run.done} of {work.run.total}")
        return taken_in(work, show) | {"new_users": states.users() - users}


def taken_in_before(
    states: States,
    path: Path,
    digest: str,
    abandon: bool,
    tell: Callable[[str], None],
    log: Log | None = None,
) -> dict[str, Any] | None:
    """How a file went that is finished; None if there is work. Others are given up if wanted."""
    if abandon:
        tell(f"gave up {counted(states.abandon(), 'unfinished file')}")
    run = states.run(digest)
    if run is None or not run.finished:
        return None
    tell(f"{path} was taken in before; there is nothing to do")
    return outcome_of(run, path, log) | {"already": True}


def taken_in(work: Adaptation, show: bool | None) -> dict[str, Any]:
    """Do what is left of a file; how it went, and how fast."""
    begun, first = time.perf_counter(), _events(work.run)
    work.go(show)
    seconds = time.perf_counter() - begun
    done = _events(work.run) - first
    return outcome_of(work.run, work.log.path, work.log) | {
        "already": False,
        "seconds": seconds,
        "events_per_second": done / seconds if done else 0.0,
    }


def outcome_of(run: Run, path: Path, log: Log | None = None) -> dict[str, Any]:
    """Figures of a file, from what was added up."""
    sums = np.array(run.tally)
    used = [b for b in range(len(sums)) if sums[b, 0]]
    outcome: dict[str, Any] = {
        "file": path.name,
        "output": run.output or None,
        "events": _events(run),
        "figures": _plain(sums.sum(0)),
        "by_position": [
            {"from": 2**b, "to": 2 ** (b + 1) - 1, "events": int(sums[b, 0])} | _plain(sums[b])
            for b in used
        ],
    }
    if log is not None:
        outcome |= {"users": len(log.users), "problems": dict(log.problems.counts)}
    return outcome


def _events(run: Run) -> int:
    return int(sum(bucket[COLUMNS.index("events")] for bucket in run.tally))


def _plain(sums: Any) -> dict[str, float | None]:
    figures = {name: float(value) for name, value in figures_of(sums).items()}
    return {name: None if np.isnan(value) else value for name, value in figures.items()}
