from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from labelmem_paper.experiments import runner
from labelmem_paper.experiments.executors import run_all
from labelmem_paper.experiments.kinds import contender
from labelmem_paper.experiments.records import Records
from labelmem_paper.experiments.runner import execute, execute_all
from labelmem_paper.experiments.sequences import trained
from labelmem_paper.experiments.sequences.methods.lmn_fixed import LMNFixed
from labelmem_paper.experiments.sequences.task import SequenceTask
from labelmem_paper.experiments.table import Run, load_table, table_names

from labelmem import training
from labelmem.errors import ConfigError

FIELDS = {
    "table", "dataset", "method", "seed", "size", "config", "metrics", "interval", "streams",
    "tokens", "us_per_token", "parameters", "device", "versions", "commit", "started", "seconds",
}  # fmt: skip
TIMES = ("us_per_token", "started", "seconds", "commit", "prepared")

TRAINING = (
    (SequenceTask, "_train"),
    (SequenceTask, "validation_loss"),
    (LMNFixed, "loss"),
    (trained, "_train"),
    (training._Trainer, "_epoch"),
)
"""What takes long before a test."""


def smoke(*methods: str) -> list[Run]:
    return list(load_table("table2").runs("smoke", methods=methods or None))


def made(folder: Path, row: str, options: str = "") -> Run:
    """The smoke run of one row, whatever the shipped table says of it."""
    size = load_table("table2").sizes["smoke"]
    (folder / "mine.toml").write_text(
        f'title = "Mine"\ntask = "sequences"\nmetrics = ["mrr"]\ndatasets = ["synthetic"]\n'
        f'methods = ["{row}"]\n[method.{row}]\n{options}\n[size.smoke]\nseeds = [0]\n'
    )
    (run,) = load_table(str(folder / "mine.toml")).runs("smoke")
    settings = {key: value for key, value in size.items() if key not in ("datasets", "seeds")}
    return replace(run, config={**settings, **run.config})


def contents(folder: Path) -> dict[str, int]:
    """Every file and when it was written; locks hold nothing."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in TIMES}


@pytest.mark.parametrize("name", table_names())
def test_every_shipped_table_runs_at_its_smoke_size(name: str, tmp_path: Path) -> None:
    runs = list(load_table(name).runs("smoke"))
    outcomes = execute_all(runs, tmp_path, "cpu", show=False)
    assert [outcome for _, outcome in outcomes] == ["recorded"] * len(runs)
    for record in Records(tmp_path / f"{name}.jsonl"):
        assert set(record) >= FIELDS
        assert set(record["interval"]) == set(record["metrics"])
        assert str(Path.home()) not in json.dumps(record)
    again = execute_all(runs, tmp_path, "cpu", show=False)
    assert [outcome for _, outcome in again] == ["skipped"] * len(runs)


@pytest.mark.data
@pytest.mark.parametrize("dataset", load_table("table2").datasets)
def test_the_real_data_sets_run_at_smoke_size(dataset: str, tmp_path: Path) -> None:
    if not os.environ.get("LABELMEM_DATA"):
        pytest.skip("LABELMEM_DATA names no folder with the real data sets")
    runs = list(load_table("table2").runs("smoke", [dataset], ["counter", "lmn"]))
    outcomes = execute_all(runs, tmp_path, "cpu", show=False)
    assert [outcome for _, outcome in outcomes] == ["recorded"] * 2


def test_every_method_searches_no_more_than_its_trials(tmp_path: Path) -> None:
    execute_all(smoke("counter", "lmn-fixed"), tmp_path, "cpu", show=False)
    for record in Records(tmp_path / "table2.jsonl"):
        assert len(record["search"]) == record["config"]["trials"]
        best = min(record["search"], key=lambda trial: trial["loss"])
        assert best == record["chosen"] | {"loss": best["loss"]}


def test_theta_of_example_streams_is_kept_where_it_moves(tmp_path: Path) -> None:
    execute_all(smoke("counter", "lmn-fixed", "lmn"), tmp_path, "cpu", show=False)
    traces = {r["method"]: r["traces"] for r in Records(tmp_path / "table2.jsonl")}
    assert traces["counter"] == traces["lmn-fixed"] == []
    assert 1 <= len(traces["lmn"]) <= 3
    for trace in traces["lmn"]:
        assert len(trace["theta"]) == 12 and all(0 < theta < 1 for theta in trace["theta"])


def test_a_run_that_another_process_has_is_left_to_it(tmp_path: Path) -> None:
    (run,) = smoke("unigram")
    own = tmp_path / ".work" / runner.digest(run.identity())
    with runner.claimed(own / "lock"):
        assert execute(run, tmp_path, "cpu", show=False) == "busy"
    assert execute(run, tmp_path, "cpu", show=False) == "recorded"


SCRIPT = """
import sys
from pathlib import Path
from labelmem_paper.experiments.runner import execute
from labelmem_paper.experiments.table import load_table
print("ready", flush=True)
for run in load_table("table2").runs("smoke", methods=["lmn"]):
    execute(run, Path(sys.argv[1]), "cpu", show=False)
"""


@pytest.mark.slow
def test_killed_anywhere_and_started_again_it_ends_in_the_same_record(tmp_path: Path) -> None:
    execute_all(smoke("lmn"), tmp_path / "straight", "cpu", show=False)
    (straight,) = Records(tmp_path / "straight" / "table2.jsonl")
    killed = tmp_path / "killed"
    for delay in (0.05, 0.15, 0.3, 0.5):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(killed)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    execute_all(smoke("lmn"), killed, "cpu", show=False)
    (resumed,) = Records(killed / "table2.jsonl")
    assert timeless(resumed) == timeless(straight)


@pytest.mark.parametrize("method", ["counter", "static", "lmn-fixed", "lmn-paper", "lmn", "rei"])
def test_what_was_prepared_is_only_tested(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path, method)
    straight, prepared = tmp_path / "straight", tmp_path / "prepared"
    assert execute(run, straight, "cpu", show=False) == "recorded"

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("not the time for this")

    with monkeypatch.context() as patch:
        patch.setattr(SequenceTask, "tested", refuse)
        assert execute(run, prepared, "cpu", show=False, prepare=True) == "prepared"
    assert list(Records(prepared / "mine.jsonl")) == []
    with monkeypatch.context() as patch:
        # Prepared once is enough.
        patch.setattr(runner, "task_of", refuse)
        assert execute(run, prepared, "cpu", show=False, prepare=True) == "prepared"
    kept = contents(prepared / ".work")
    with monkeypatch.context() as patch:
        for where, what in TRAINING:
            patch.setattr(where, what, refuse)
        assert execute(run, prepared, "cpu", show=False) == "recorded"
    assert contents(prepared / ".work") == kept
    (one,), (other,) = (Records(folder / "mine.jsonl") for folder in (straight, prepared))
    assert timeless(one) == timeless(other)
    assert one["prepared"] is None
    assert set(other["prepared"]) == {"device", "commit", "seconds"}
    assert other["seconds"] >= other["prepared"]["seconds"]
    assert execute(run, prepared, "cpu", show=False, prepare=True) == "skipped"


def test_executors_prepare(tmp_path: Path) -> None:
    ((_, outcome),) = run_all(smoke("unigram"), tmp_path, "cpu", prepare=True)
    assert outcome == "prepared"


@pytest.mark.parametrize("method", ["unigram", "static", "rei", "lmn-fixed", "lmn"])
def test_a_variant_is_run_by_the_method_that_it_is(method: str, tmp_path: Path) -> None:
    plain, variant = made(tmp_path, method), made(tmp_path, "mine", f'is = "{method}"')
    assert variant.config["options"]["is"] == method
    for run in (plain, variant):
        assert execute(run, tmp_path, "cpu", show=False) == "recorded"
    one, other = Records(tmp_path / "mine.jsonl")
    assert (one["method"], other["method"]) == (method, "mine")
    assert one["metrics"] == other["metrics"] and one["chosen"] == other["chosen"]
    assert other["config"]["options"] == one["config"]["options"] | {"is": method}


def test_executors_and_devices_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the executor is 'magic'"):
        run_all([], tmp_path, "cpu", "magic")
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="torch sees none"):
            run_all([], tmp_path, "cuda")


def test_joint_training_changes_the_model_and_not_the_kept_one(tmp_path: Path) -> None:
    run = made(tmp_path, "lmn", "training = { train_model = true, held_out = 0.5 }")
    task = SequenceTask(run, torch.device("cpu"), tmp_path, show=False)
    contestant: Any = contender("lmn")(task)
    (tmp_path / "own").mkdir()
    trained = contestant.finish(dict(contestant.start), tmp_path / "own")
    kept = task.model(contestant.options.get("model")).state_dict()
    moved = trained.backbone.model.state_dict()
    assert any(not torch.equal(kept[name], moved[name]) for name in kept)
    assert not any(p.requires_grad for p in trained.backbone.model.parameters())
