"""Model folders, their users and prediction files of format 1 are read and continued."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from golden.folders import (
    LOGS,
    STATES,
    adapt,
    adapt_embeddings,
    answer,
    answers,
    assert_like,
    assert_same_prediction,
    assert_same_predictions,
    copied,
    move_output,
)

USERS = LOGS / "model" / STATES


def test_a_model_folder_predicts_as_it_did(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    adapt(copied(tmp_path / "model", None), LOGS / "day1.csv", out)
    assert_same_predictions(out, LOGS / "day1.jsonl")


def test_users_go_on(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    adapt(copied(tmp_path / "model", USERS), LOGS / "day2.csv", out)
    assert_same_predictions(out, LOGS / "day2.jsonl")


def test_what_is_said_of_users(tmp_path: Path) -> None:
    expected = json.loads((LOGS / "answers.json").read_text(encoding="utf-8"))
    assert_like(answers(copied(tmp_path / "model", USERS)), expected)


def test_a_log_is_still_known(tmp_path: Path) -> None:
    told = answer("adapt", copied(tmp_path / "model", USERS), LOGS / "day1.csv")
    assert told["already"] and told["events"] == 70


def test_of_a_log_that_grows_only_the_new_rows_count(tmp_path: Path) -> None:
    _, rows = (LOGS / "day2.csv").read_bytes().split(b"\n", 1)
    (tmp_path / "log.csv").write_bytes((LOGS / "day1.csv").read_bytes() + rows)
    out = tmp_path / "out.jsonl"
    adapt(copied(tmp_path / "model", USERS), tmp_path / "log.csv", out)
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (out, LOGS / "day2.jsonl")]
    for a, b in zip(*lines, strict=True):
        assert_same_prediction(json.loads(a) | {"row": 0}, json.loads(b) | {"row": 0})


def test_an_interrupted_log_is_taken_in_to_its_end(tmp_path: Path) -> None:
    half, out = LOGS / "interrupted", tmp_path / "out.jsonl"
    folder = copied(tmp_path / "model", half / STATES)
    shutil.copy(half / "day1.jsonl", out)
    move_output(folder / STATES, str(out))
    adapt(folder, LOGS / "day1.csv", out)
    assert_same_predictions(out, LOGS / "day1.jsonl")
    adapt(folder, LOGS / "day2.csv", tmp_path / "next.jsonl")
    assert_same_predictions(tmp_path / "next.jsonl", LOGS / "day2.jsonl")


@pytest.mark.parametrize("part", ["first", "second"])
def test_memories_of_embeddings_go_on(part: str, tmp_path: Path) -> None:
    folder, states, out = LOGS / "embeddings", tmp_path / "states", tmp_path / "out.jsonl"
    if part == "second":
        shutil.copytree(folder / "states", states)
    adapt_embeddings(folder / f"{part}.npz", states, out)
    assert_same_predictions(out, folder / f"{part}.jsonl")
