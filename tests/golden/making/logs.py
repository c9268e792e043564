"""A model folder, users that it has adapted to, and a folder that a crash left behind."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from golden.arithmetic import habits, numbers, vectors
from golden.folders import (
    LOGS,
    STATES,
    adapt,
    adapt_embeddings,
    answers,
    call,
    copied,
    move_output,
)
from golden.making.crash import crashed

Row = tuple[str, str, int]
_PLACES = [f"place {i}" for i in range(13)]
_DAYS = {"day1": (25, 17, 12, 9, 5, 2), "day2": (4, 9, 0, 6, 3, 5, 7)}
"""Events of each user."""


def write() -> None:
    """Everything that commands read and write."""
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        _write_model(place)
        _write_days(place)
        _write_answers(place)
        _write_embeddings(place)


def _write_model(place: Path) -> None:
    rows = [
        (f"teacher-{user:02d}", item, 1_600_000_000 + 3600 * t + user)
        for user in range(40)
        for t, item in enumerate(_rounds((), 20 + user % 17, 60 + 7 * user))
    ]
    _write_log(place / "events.csv", rows)
    columns = ("--user", "user", "--item", "place", "--time", "ts", "--device", "cpu")
    small = ("--quick", "--effort", "0.01")
    call("fit", place / "events.csv", *columns, *small, "--out", LOGS / "model")


def _write_days(place: Path) -> None:
    model, start = LOGS / "model", 1_600_100_000
    for day, lengths in _DAYS.items():
        rows = [
            (f"person-{user:02d}", item, start + 3600 * t + user)
            for user, length in enumerate(lengths)
            for t, item in enumerate(_rounds((f"home of {user}",), length, 81 + 7 * user))
        ]
        _write_log(LOGS / f"{day}.csv", rows)
        start += 100_000
    half = LOGS / "interrupted"
    half.mkdir()
    shutil.copytree(model, place / "half")
    crashed(place / "half", LOGS / "day1.csv", half / "day1.jsonl", after=1)
    with (half / "day1.jsonl").open("r+b") as file:  # nor was the last line written to its end
        file.truncate(file.seek(0, 2) - 100)
    shutil.copy(place / "half" / STATES, half / STATES)
    adapt(model, LOGS / "day1.csv", LOGS / "day1.jsonl")
    shutil.copytree(model, place / "later")
    adapt(place / "later", LOGS / "day2.csv", LOGS / "day2.jsonl")
    for states in (half / STATES, model / STATES):
        move_output(states, "day1.jsonl")


def _rounds(own: tuple[str, ...], steps: int, seed: int) -> list[str]:
    """A user who goes round a few places, with exceptions: there is something to learn of that."""
    draw = numbers(seed)
    round_ = [*(_PLACES[int(next(draw) * 9)] for _ in range(3)), *own]
    return [
        round_[t % len(round_)] if next(draw) < 0.8 else _PLACES[int(next(draw) * len(_PLACES))]
        for t in range(steps)
    ]


def _write_answers(place: Path) -> None:
    told = answers(copied(place / "asked", LOGS / "model" / STATES))
    text = json.dumps(told, indent=1, sort_keys=True) + "\n"
    (LOGS / "answers.json").write_text(text, encoding="utf-8")


def _write_embeddings(place: Path) -> None:
    folder = LOGS / "embeddings"
    folder.mkdir()
    for part, first in (("first", 0), ("second", 30)):
        labels = habits(("ant", "bee", "cat", "dog"), (), 60, 3)
        matrix = vectors(labels, 5, 4).numpy()
        draw = numbers(5)
        users = [f"person-{int(2 * next(draw))}" for _ in labels]
        some = slice(first, first + 30)
        np.savez(
            folder / f"{part}.npz", embeddings=matrix[some], labels=labels[some], users=users[some]
        )
    for part in ("first", "second"):
        out, states = folder / f"{part}.jsonl", place / "states"
        adapt_embeddings(folder / f"{part}.npz", states, out)
        if part == "first":
            shutil.copytree(states, folder / "states")
            move_output(folder / "states" / STATES, "first.jsonl")


def _write_log(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("user", "place", "ts"))
        writer.writerows(sorted(rows, key=lambda row: row[2]))
