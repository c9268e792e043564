from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from labelmem.cli import app

runner = CliRunner()


def call(*arguments: object) -> Any:
    return runner.invoke(app, ["adapt-embeddings", *(str(argument) for argument in arguments)])


@pytest.fixture
def points(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=40)
    x = np.eye(3)[y] + 0.1 * rng.normal(size=(40, 3))
    np.savez(tmp_path / "points.npz", embeddings=x, labels=y, account=y % 2)
    return tmp_path / "points.npz"


def test_figures_predictions_and_states(points: Path, tmp_path: Path) -> None:
    out, states = tmp_path / "out.jsonl", tmp_path / "kept"
    shown = call(points, "--out", out, "--states", states, "--users", "account", "--json")
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert told["events"] == 40 and told["users"] == 2 and told["figures"]["accuracy"] > 0.8
    assert len(out.read_text().splitlines()) == 40
    again = call(points, "--states", states, "--users", "account")
    assert again.exit_code == 0 and "taken in before" in again.stderr


def test_a_table_and_what_guessing_gives(points: Path) -> None:
    shown = call(points)
    assert shown.exit_code == 0 and "most common so far" in shown.stdout and "MRR" in shown.stdout


def test_a_missing_array_is_one_line(points: Path) -> None:
    shown = call(points, "--labels", "class")
    assert shown.exit_code == 2 and "has no array class" in shown.stderr


def test_known_examples_teach_a_head(points: Path, tmp_path: Path) -> None:
    arrays = np.load(points)
    old = arrays["labels"] < 2
    known = tmp_path / "known.npz"
    np.savez(known, embeddings=arrays["embeddings"][old], labels=arrays["labels"][old])
    shown = call(points, "--known", known, "--users", "account", "--states", tmp_path / "kept")
    assert shown.exit_code == 0, shown.output
    assert "the head alone: " in shown.stdout and "known from" in shown.stderr
    told = json.loads(call(points, "--known", known, "--json").stdout)
    assert told["head_alone"] == pytest.approx(old.mean())
    assert told["figures"]["accuracy"] > told["head_alone"]


@pytest.mark.parametrize("option", ["--lam=3", "--cells=2", "--margin=1"])
def test_options_of_the_memory_alone_do_not_go_with_known(points: Path, option: str) -> None:
    assert call(points, option).exit_code == 0
    shown = call(points, "--known", points, option)
    assert shown.exit_code == 2 and "lam, cells and margin" in shown.stderr
