"""The methods that LMN is compared with through the runner, at smoke size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from labelmem_paper.experiments.kinds import contender
from labelmem_paper.experiments.records import Records
from labelmem_paper.experiments.runner import execute
from labelmem_paper.experiments.sequences import trained as module
from labelmem_paper.experiments.sequences.methods.lstm import larger, recurrent_parameters
from labelmem_paper.experiments.sequences.task import SequenceTask
from labelmem_paper.experiments.sequences.trained import WORST, trained
from labelmem_paper.experiments.table import Run, load_table

from labelmem.errors import ConfigError, ModelError
from labelmem.models import GRUModel, LSTMModel

METHODS = ("lstm", "rei", "maml", "dntm")
BASELINES = ("session-knn", "ncm", "slda", "knn", "sgd-head", "sgd-all", "unigram", "counter")


def runs(**options: dict[str, Any]) -> dict[str, Run]:
    """The smoke size of the shipped table with these methods, whatever it lists itself."""
    methods = (*METHODS, *BASELINES)
    table = replace(load_table("table2"), name="mine", methods=methods, options=options)
    return {run.method: run for run in table.runs("smoke", methods=methods)}


def task(run: Run, folder: Path) -> SequenceTask:
    return SequenceTask(run, torch.device("cpu"), folder, show=False)


@pytest.mark.parametrize("name", METHODS)
def test_it_runs_and_trains_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs()[name]
    assert execute(run, tmp_path, "cpu", show=False) == "recorded"
    (record,) = Records(tmp_path / "mine.jsonl")
    assert record["method"] == name and record["parameters"] > 0
    assert 0 < record["metrics"]["log_perplexity"] < WORST
    (tmp_path / "mine.jsonl").unlink()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("trained although the weights are there")

    monkeypatch.setattr(module, "_train", refuse)
    monkeypatch.setattr(SequenceTask, "_train", refuse)
    assert execute(run, tmp_path, "cpu", show=False) == "recorded"
    (again,) = Records(tmp_path / "mine.jsonl")
    assert again["metrics"] == record["metrics"]
    assert not list((tmp_path / ".work" / "shared").glob("*.checkpoint"))


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_searched_from_a_point_of_its_grid(name: str, tmp_path: Path) -> None:
    chosen = contender(name)
    grid, start = chosen.grid, chosen.start  # type: ignore[attr-defined]
    assert grid.keys() == start.keys()
    assert all(start[key] in values == sorted(values) for key, values in grid.items())
    assert execute(runs()[name], tmp_path, "cpu", show=False) == "recorded"
    (record,) = Records(tmp_path / "mine.jsonl")
    assert record["chosen"].keys() == grid.keys()
    assert record["metrics"]["floored"] == 0  # every label has a chance, also those never seen


def test_a_table_may_say_where_the_search_begins(tmp_path: Path) -> None:
    run = runs(maml={"start": {"train_lr": 0.1}})["maml"]
    assert execute(run, tmp_path, "cpu", show=False) == "recorded"
    (record,) = Records(tmp_path / "mine.jsonl")
    first = record["search"][0]
    assert (first["lr"], first["train_lr"]) == (0.3, 0.1)
    wrong = runs(maml={"start": {"rate": 0.1}})["maml"]
    with pytest.raises(ConfigError, match=r"start has \['rate'\]; this search has lr, train_lr"):
        execute(wrong, tmp_path, "cpu", show=False)


@pytest.mark.parametrize("embedding", [None, 7])
@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_parameters_are_those_of_the_models(embedding: int | None, layers: int) -> None:
    for kind, cls in (("gru", GRUModel), ("lstm", LSTMModel)):
        model = cls(5, dim=6, embedding=embedding, layers=layers)
        counted = sum(p.numel() for p in model.rnn.parameters())
        assert recurrent_parameters(kind, 6, embedding, layers) == counted


@pytest.mark.parametrize("dim", [1, 8, 50, 128])
def test_the_larger_model_comes_closest_to_five_times(dim: int) -> None:
    wanted = 5 * recurrent_parameters("gru", dim)
    found = larger({"kind": "gru", "dim": dim, "dropout": 0.5})["dim"]
    off = {d: abs(recurrent_parameters("lstm", d) - wanted) for d in (found - 1, found, found + 1)}
    assert min(off, key=lambda d: off[d]) == found


def test_a_table_may_say_more_at_a_size_and_for_all_sizes(tmp_path: Path) -> None:
    run = runs(rei={"vector": 3, "training": {"lr": 0.5}})["rei"]
    run.config["rei"] = {"vector": 2, "dim": 4, "training": {"batch": 2}}  # type: ignore[index]
    options, training = contender("rei")(task(run, tmp_path)).settings  # type: ignore[attr-defined]
    shared = {name: run.config["model"][name] for name in ("dropout", "tied")}
    assert options == {**shared, "vector": 3, "dim": 4}
    assert (training["lr"], training["batch"]) == (0.5, 2)
    assert training["epochs"] == run.config["model"]["epochs"]


def test_a_setting_that_runs_away_is_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rei = contender("rei")(task(runs()["rei"], tmp_path))

    def run_away(*_: Any) -> None:
        raise ModelError("the validation loss is nan")

    monkeypatch.setattr(module, "trained", run_away)
    assert rei.loss(dict(rei.start)) == WORST


def test_only_networks_can_be_trained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="counter has no network"):
        trained(task(runs()["rei"], tmp_path), "counter", {}, {})
