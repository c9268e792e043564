from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelmem_paper.cli import app
from labelmem_paper.experiments.records import Records
from typer.testing import CliRunner

runner = CliRunner()
ASKED = ["reproduce", "table2", "--size", "smoke", "--method", "unigram", "--device", "cpu"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_prepared_runs_are_tested_later(here: Path) -> None:
    first = runner.invoke(app, [*ASKED, "--prepare"])
    assert first.exit_code == 0, first.output
    assert "prepared  table2 synthetic unigram seed 0 (smoke)" in first.stdout
    assert "1 prepared in results" in first.stdout
    assert not (here / "results/table2.jsonl").exists()
    second = runner.invoke(app, [*ASKED, "--json"])
    assert [row["outcome"] for row in json.loads(second.stdout)] == ["recorded"]
    (record,) = Records(here / "results/table2.jsonl")
    assert record["prepared"]["seconds"] >= 0
    assert "1 skipped" in runner.invoke(app, ASKED).stdout


def test_the_help_says_what_preparing_is_for() -> None:
    shown = " ".join(runner.invoke(app, ["reproduce", "--help"]).stdout.split())
    assert "only then can their microseconds per token be compared" in shown
