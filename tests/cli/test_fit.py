"""The commands around a log, from a file to forgetting, as a person would call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from logs.habits import SMALL, write_log
from typer.testing import CliRunner

from labelmem.cli import app
from labelmem.logs import fit_command

runner = CliRunner()


def call(*arguments: object) -> Any:
    return runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_command, "recipe_for", lambda *_: SMALL)


@pytest.mark.usefixtures("small")
def test_from_a_log_to_forgetting(tmp_path: Path) -> None:
    log, model = write_log(tmp_path / "events.csv"), tmp_path / "model"
    columns = ("--user", "user", "--item", "place", "--time", "ts", "--device", "cpu")
    fitted = call("fit", log, *columns, "--out", model)
    assert fitted.exit_code == 0, fitted.output
    assert "events of 24 users" in fitted.stderr and "per-user counter" in fitted.stdout
    assert "card.md" in fitted.stdout

    page, out = tmp_path / "page.html", tmp_path / "out.jsonl"
    adapted = call("adapt", model, log, "--out", out, "--report", page, "--json")
    assert adapted.exit_code == 0, adapted.output
    told = json.loads(adapted.stdout)
    assert told["events"] == len(out.read_text().splitlines()) and told["new_users"] == 24
    assert "<table>" in page.read_text()
    again = call("adapt", model, log, "--out", out)
    assert again.exit_code == 0 and "taken in before" in again.stderr and "MRR" in again.stdout

    predicted = call("predict", model, "--user", "person-0001", "--top", "3")
    assert predicted.exit_code == 0 and len(predicted.stdout.splitlines()) == 3
    rows = json.loads(call("predict", model, "--user", "person-0001", "--json").stdout)["top"]
    assert rows[0]["item"] in predicted.stdout
    assert "never seen" in call("predict", model, "--user", "nobody").stderr

    assert "from memory" in call("explain", model, "--user", "person-0001").stdout
    assert json.loads(call("explain", model, "--user", "person-0001", "--json").stdout)["cells"]
    assert "home of 1" in call("inspect", model, "--user", "person-0001").stdout
    assert json.loads(call("inspect", model, "--user", "person-0001", "--json").stdout)["memory"]

    forgotten = call("forget", model, "--user", "person-0001")
    assert forgotten.exit_code == 0 and "forgot user person-0001" in forgotten.stdout
    assert str(out) in forgotten.stdout
    assert not json.loads(call("forget", model, "--user", "person-0001", "--json").stdout)["found"]
    lost = call("inspect", model, "--user", "person-0001")
    assert lost.exit_code == 2 and "nothing is kept" in lost.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--user", "user"], "Missing option"),
        (["--user", "user", "--item", "nope"], "has no column nope; its columns are user"),
        (["--user", "user", "--item", "place", "--skip-bad", "--strict"], "contradict"),
        (["--user", "user", "--item", "place", "--device", "abacus"], "cannot be used"),
    ],
    ids=["no item", "no column", "contradiction", "device"],
)
def test_mistakes_are_one_line(arguments: list[str], told: str, tmp_path: Path) -> None:
    log = write_log(tmp_path / "events.csv")
    shown = call("fit", log, *arguments, "--out", tmp_path / "model")
    assert shown.exit_code == 2 and told in shown.stderr and "Traceback" not in shown.output
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]


@pytest.mark.parametrize("name", ["predict", "explain", "inspect", "forget"])
def test_a_folder_that_is_no_model_is_said(name: str, tmp_path: Path) -> None:
    shown = call(name, tmp_path, "--user", "42")
    assert shown.exit_code == 2 and "no model folder" in shown.stderr


def test_a_target_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    shown = call("adapt", tmp_path, tmp_path / "x.csv", "--out", tmp_path / "no" / "out.jsonl")
    assert shown.exit_code == 2 and "does not exist" in shown.stderr
