"""Running the cells of a table: search, train, test, record; and picking up where it stopped."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labelmem import __version__
from labelmem.evaluation import Evaluation, evaluate
from labelmem.experiments.contender import Contender, contender
from labelmem.experiments.records import Record, Records, claimed, digest
from labelmem.experiments.table import Run
from labelmem.experiments.task import SequenceTask
from labelmem.experiments.traces import ThetaTraces
from labelmem.online import OnlineMethod
from labelmem.progress import progress_bar
from labelmem.search import Trial, climb
from labelmem.storage import write_file

__all__ = ["Outcome", "execute", "execute_all"]

Outcome = str
"""What became of a run: ``recorded``, ``skipped`` (it was there) or ``busy`` (elsewhere)."""


def execute_all(
    runs: Iterable[Run], results: Path, device: str, show: bool | None = None
) -> list[tuple[Run, Outcome]]:
    """Execute runs one after another; those that another process works on are left to it."""
    return [(run, execute(run, results, device, show)) for run in runs]


def execute(run: Run, results: Path, device: str, show: bool | None = None) -> Outcome:
    """Execute one run unless it is recorded already, continuing what an earlier try left.

    Parameters
    ----------
    results
        Folder of the records, ``<table>.jsonl``; what is kept between tries lies in ``.work``.
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
        records.append(_run(run, torch.device(device), work, own, show))
    return "recorded"


def _run(run: Run, device: torch.device, work: Path, own: Path, show: bool | None) -> Record:
    clock, started, commit = time.perf_counter(), datetime.now(UTC), _commit()
    shared = work / "shared"
    shared.mkdir(exist_ok=True)
    task = SequenceTask(run, device, shared, show)
    method = contender(run.method)(task)
    log = _search(method, own / "search.json", run, show)
    best = min(log, key=lambda trial: trial["loss"])
    point = {name: value for name, value in best.items() if name != "loss"}
    tested = method.finish(point, own)
    traces = ThetaTraces()
    done = evaluate(tested, task.test, task.config["batch_size"], watch=traces, show=show)
    return run.identity() | {
        **_figures(done),
        "traces": traces.record(),
        "search": log,
        "chosen": point,
        "parameters": _parameters(tested),
        "data": _data(task),
        "device": _device_name(device),
        "versions": _versions(),
        "commit": commit,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - clock, 1),
    }


def _search(method: Contender, path: Path, run: Run, show: bool | None) -> list[Trial]:
    """Search on validation; every trial is kept at once, so that a killed search continues."""
    log: list[Trial] = json.loads(path.read_text()) if path.exists() else []
    trials = int(run.config["trials"])
    if not method.grid:
        return log or [dict(method.start) | {"loss": method.loss(dict(method.start))}]
    with progress_bar(f"{run.method}: search", trials, show) as report:

        def keep(log: list[Trial]) -> None:
            write_file(path, json.dumps(log).encode())
            report(note=f"best {min(t['loss'] for t in log):.3f} nats")

        report(len(log))
        return climb(method.loss, dict(method.start), method.grid, trials, log, keep)


def _figures(done: Evaluation) -> Record:
    result = done.result()
    # A group without tokens, say new labels where there are none, has no figure.
    metrics = {name: value for name, value in result.metrics.items() if not math.isnan(value)}
    return {
        "metrics": metrics,
        "interval": {name: _bounds(*result.interval[name]) for name in metrics},
        "streams": result.streams,
        "tokens": result.tokens,
        "us_per_token": round(done.us_per_token, 2),
        "curve": [
            {"start": b.start, "stop": b.stop, "tokens": b.tokens, "loss": b.log_perplexity}
            for b in done.metrics.by_position()
        ],
    }


def _bounds(low: float, high: float) -> list[float] | None:
    """An interval as JSON can hold it; a single stream has none."""
    return None if math.isnan(low) or math.isnan(high) else [low, high]


def _parameters(method: OnlineMethod[Any]) -> int:
    """Trained numbers of the method, those of its model included."""
    modules = [value for value in vars(method).values() if isinstance(value, torch.nn.Module)]
    backbone = getattr(method, "backbone", None)
    if backbone is not None:
        modules.append(backbone.model)
    distinct = {id(p): p.numel() for module in modules for p in module.parameters()}
    return sum(distinct.values())


def _data(task: SequenceTask) -> Record:
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
