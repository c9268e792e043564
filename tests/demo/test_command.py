from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from labelmem.cli import app
from labelmem.demo import command
from labelmem.demo.command import one_thread, require_extras
from labelmem.demo.run import TaskResult
from labelmem.errors import MissingExtraError

runner = CliRunner()


@pytest.fixture
def done_already(results: list[TaskResult], monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo has been run; only what is made of it is looked at."""
    monkeypatch.setattr(command, "run_demo", lambda seed, quick: results)
    monkeypatch.setenv("COLUMNS", "90")


def test_quick_demo_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    out, figures = tmp_path / "report.html", tmp_path / "figures.json"
    arguments = ["demo", "--quick", "--seed", "1", "--out", str(out), "--json", str(figures)]
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert f"Report: {out}" in shown.stdout
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    answer = json.loads(figures.read_text())
    assert (answer["seed"], answer["quick"]) == (1, True)
    assert [task["task"] for task in answer["tasks"]] == ["digits", "habits"]
    for task in answer["tasks"]:
        for method in task["methods"]:
            assert f"{method['metrics']['log_perplexity']:.3f}" in shown.stdout


@pytest.mark.usefixtures("done_already")
def test_json_on_the_standard_output_is_nothing_but_json(tmp_path: Path) -> None:
    shown = runner.invoke(app, ["demo", "--out", str(tmp_path / "r.html"), "--json", "-"])
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["tasks"]) == 2
    assert "Digits:" in shown.stderr and "Report:" in shown.stderr


@pytest.mark.usefixtures("done_already")
@pytest.mark.parametrize("option", ["--out", "--json"])
def test_a_target_that_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(seed: int, quick: bool) -> Any:
        raise AssertionError("work was done first")

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    def check_refused(target: Path, words: str) -> None:
        shown = runner.invoke(app, ["demo", option, str(target)])
        assert shown.exit_code == 2
        assert words in shown.stderr and len(shown.stderr.splitlines()) == 1

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "run_demo", never)
    check_refused(tmp_path, "is a folder")
    check_refused(tmp_path / "no" / "x", "does not exist")
    monkeypatch.setattr("labelmem.targets.tempfile.TemporaryFile", full)
    check_refused(tmp_path / "x", "nothing can be written to the folder")


def test_missing_extras_are_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = importlib.util.find_spec
    missing = ("sklearn", "matplotlib")
    monkeypatch.setattr(command, "find_spec", lambda n: None if n in missing else real(n))
    with pytest.raises(MissingExtraError, match=r"scikit-learn and matplotlib: pip install 'label"):
        require_extras()
    shown = runner.invoke(app, ["demo", "--out", str(tmp_path / "r.html")])
    assert shown.exit_code == 2
    assert "pip install 'labelmem[demo]'" in shown.stderr and "Traceback" not in shown.output


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_thread():
        assert torch.get_num_threads() == 1
        _ = 1 / 0
    assert torch.get_num_threads() == before
