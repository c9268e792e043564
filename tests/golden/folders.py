"""Model folders, logs and prediction files: what the commands read, and reading what they wrote."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from golden.trajectory import TOLERANCE
from typer.testing import CliRunner

from labelmem.cli import app

LOGS = Path(__file__).parent / "files" / "logs"
STATES = "users.sqlite"
ROUNDED = TOLERANCE + 1e-6
"""Prediction files have six digits."""


def call(*arguments: object) -> Any:
    """Run a command; it must succeed."""
    told = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert told.exit_code == 0, told.output
    return told


def answer(*arguments: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    told: dict[str, Any] = json.loads(call(*arguments, "--json").stdout)
    return told


def adapt(folder: Path, log: Path, out: Path) -> None:
    """Take in a log."""
    call("adapt", folder, log, "--out", out, "--device", "cpu")


def adapt_embeddings(vectors: Path, states: Path, out: Path) -> None:
    """Take in embeddings of several users."""
    options = ("--users", "users", "--cells", 2, "--states", states)
    call("adapt-embeddings", vectors, *options, "--out", out)


def answers(folder: Path) -> dict[str, Any]:
    """What is said of users who are known and of one who is not; the first is forgotten then."""
    users = ("person-00", "person-03", "nobody")
    told = {
        "predict": {user: answer("predict", folder, "--user", user, "--top", 9) for user in users},
        "explain": {user: answer("explain", folder, "--user", user) for user in users},
        "inspect": {user: answer("inspect", folder, "--user", user) for user in users[:2]},
        "forget": answer("forget", folder, "--user", users[0]),
    }
    del told["forget"]["probes"]  # how it is looked for is nobody's business
    return told


def copied(place: Path, states: Path | None) -> Path:
    """A copy of the model folder, with these users or with none."""
    shutil.copytree(LOGS / "model", place)
    (place / STATES).unlink()
    if states is not None:
        shutil.copy(states, place / STATES)
    return place


def move_output(states: Path, out: str) -> None:
    """Say that the output of a log lies elsewhere: the file has the absolute path of its maker."""
    with closing(sqlite3.connect(states)) as base:
        base.execute("UPDATE files SET output = ?", (out,))
        base.commit()
        base.execute("VACUUM")


def assert_same_predictions(seen: Path, expected: Path) -> None:
    """The same lines in the same order, with the same numbers within the tolerance."""
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (seen, expected)]
    assert len(lines[0]) == len(lines[1])
    for a, b in zip(*lines, strict=True):
        assert_same_prediction(json.loads(a), json.loads(b), b)


def assert_same_prediction(mine: dict[str, Any], theirs: dict[str, Any], where: str = "") -> None:
    """Two lines of a prediction file agree."""
    assert above_the_last(mine["top"]) == above_the_last(theirs["top"]), where
    for line in (mine, theirs):
        line["top"] = [p for _, p in line["top"]]
    assert_like(mine, theirs, where)


def above_the_last(top: list[Any]) -> set[str]:
    """The items in front of those that tie with the last: which of these are told is left open."""
    return {item for item, p in top if p > top[-1][1] + ROUNDED}


def assert_like(seen: Any, expected: Any, where: str = "") -> None:
    """Two documents agree; numbers with a fraction within the tolerance."""
    if isinstance(expected, dict):
        assert seen.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_like(seen[key], value, f"{key} in {where}")
    elif isinstance(expected, list):
        assert len(seen) == len(expected), where
        for a, b in zip(seen, expected, strict=True):
            assert_like(a, b, where)
    elif isinstance(expected, float):
        assert abs(seen - expected) <= ROUNDED * max(1.0, abs(expected)), where
    else:
        assert seen == expected, where
