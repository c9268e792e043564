"""Running the cells of a table: search, train, test, record; and picking up where it stopped."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labelmem import __version__
from labelmem.progress import progress_bar
from labelmem.search import Point, Trial, climb
from labelmem.storage import write_file
from labelmem_paper.experiments.contender import Task, TaskContender
from labelmem_paper.experiments.kinds import contender, task_of
from labelmem_paper.experiments.records import Record, Records, claimed, digest
from labelmem_paper.experiments.table import Run

__all__ = ["Outcome", "execute", "execute_all"]

Outcome = str
"""What became of a run: ``recorded``, ``prepared``, ``skipped`` (recorded) or ``busy``."""


def execute_all(
    runs: Iterable[Run],
    results: Path,
    device: str,
    show: bool | None = None,
    prepare: bool = False,
) -> list[tuple[Run, Outcome]]:
    """Execute runs one after another; those that another process works on are left to it."""
    return [(run, execute(run, results, device, show, prepare)) for run in runs]


def execute(
    run: Run, results: Path, device: str, show: bool | None = None, prepare: bool = False
) -> Outcome:
    """Execute one run unless it is recorded already, continuing what an earlier try left.

    Parameters
    ----------
    results
        Folder of the records, ``<table>.jsonl``; what is kept between tries lies in ``.work``.
    prepare
        Search and train, and stop there; executing the run later only tests it. Many runs can be
        prepared side by side, and then be tested, and timed, one after another.
    """
    records = Records(results / f"{run.table}.jsonl")
    if records.find(run.identity()) is not None:
        return "skipped"
    work = results / ".work"
    own = work / digest(run.identity())
    with claimed(own / "lock") as mine:
        if not mine:
            return "busy"
        if records.find(run.identity()) is not None:  # finished while we waited for the claim
            return "skipped"
        if prepare:
            _prepare(run, torch.device(device), work, own, show)
            return "prepared"
        records.append(_run(run, torch.device(device), work, own, show))
    return "recorded"


@dataclass(frozen=True)
class _Ready:
    """A method that only has to be tested, and how it came about."""

    task: Task
    method: Any
    search: list[Trial]
    chosen: Point


def _ready(run: Run, device: torch.device, work: Path, own: Path, show: bool | None) -> _Ready:
    shared = work / "shared"
    shared.mkdir(exist_ok=True)
    task = task_of(run.task)(run, device, shared, show)
    method = contender(run.method, run.config["options"], run.task)(task)
    log = _search(method, own / "search.json", run, show)
    best = min(log, key=lambda trial: trial["loss"])
    point = {name: value for name, value in best.items() if name != "loss"}
    return _Ready(task, method.finish(point, own), log, point)


def _prepare(run: Run, device: torch.device, work: Path, own: Path, show: bool | None) -> None:
    """Leave everything but the test behind, and a note of what it took and where."""
    if _prepared(own) is not None:
        return
    clock, commit = time.perf_counter(), _commit()
    _ready(run, device, work, own, show)
    note = {
        "device": _device_name(device),
        "commit": commit,
        "seconds": round(time.perf_counter() - clock, 1),
    }
    write_file(own / "prepared.json", json.dumps(note).encode())


def _prepared(own: Path) -> Record | None:
    path = own / "prepared.json"
    note: Record | None = json.loads(path.read_text()) if path.exists() else None
    return note


def _run(run: Run, device: torch.device, work: Path, own: Path, show: bool | None) -> Record:
    clock, started, commit = time.perf_counter(), datetime.now(UTC), _commit()
    earlier = _prepared(own)
    ready = _ready(run, device, work, own, show)
    tested = ready.task.tested(ready.method)
    seconds = time.perf_counter() - clock + (earlier or {}).get("seconds", 0.0)
    return run.identity() | {
        **tested,
        "search": ready.search,
        "chosen": ready.chosen,
        "data": _data(ready.task),
        "device": _device_name(device),
        "versions": _versions(),
        "commit": commit,
        "started": started.isoformat(timespec="seconds"),
        "prepared": earlier,
        "seconds": round(seconds, 1),
    }


def _search(
    method: TaskContender[Any, Any], path: Path, run: Run, show: bool | None
) -> list[Trial]:
    """Search on validation; every trial is kept at once, so that a killed search continues."""
    log: list[Trial] = json.loads(path.read_text()) if path.exists() else []
    trials = int(run.config["trials"]) if method.grid else 1
    with progress_bar(f"{run.method}: search", trials, show) as report:

        def keep(log: list[Trial]) -> None:
            write_file(path, json.dumps(log).encode())
            report(note=f"best {min(t['loss'] for t in log):.3f}")

        report(len(log))
        return climb(method.loss, dict(method.start), method.grid, trials, log, keep)


def _data(task: Task) -> Record:
    """Which files, by name, and how they were prepared."""
    source, recipe = task.data.source, task.data.recipe
    files = [path.name for path in source.paths]
    prepared = asdict(recipe) if is_dataclass(recipe) and not isinstance(recipe, type) else None
    return {
        "files": files,
        "form": source.form,
        "subset": source.subset,
        "recipe": prepared,
    }


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"cpu, {threads} thread{'s' if threads > 1 else ''}"


def _versions() -> dict[str, str]:
    return {
        "labelmem": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _commit() -> str | None:
    """The commit of the code that ran; LABELMEM_COMMIT says it where there is no repository."""
    if given := os.environ.get("LABELMEM_COMMIT"):
        return given
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return asked.stdout.strip()
