"""Small logs of users with habits, written as files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from labelmem.logs.recipe import Recipe

SMALL = Recipe(
    trials=2, epochs=3, static_epochs=1, combiner_epochs=2, variants=2, folds=2, search_events=50
)
"""All stages of a fit, in a few seconds."""
HEADER = ("user", "place", "ts")
Event = tuple[str, str, int]


def events(users: int = 24, each: int = 14, seed: int = 0) -> list[Event]:
    """Everybody goes round a few common places and one of their own, in order of time."""
    rng = np.random.default_rng(seed)
    rows: list[Event] = []
    for user in range(users):
        favourites = [f"place {i}" for i in rng.integers(8, size=3)] + [f"home of {user}"]
        steps = int(each * (0.5 + rng.random()))
        for t in range(steps):
            place = favourites[t % 4] if rng.random() < 0.8 else f"place {rng.integers(12)}"
            rows.append((f"person-{user:04d}", place, 1_600_000_000 + 3600 * t + user))
    return sorted(rows, key=lambda row: row[2])


def write_log(path: Path, rows: list[Event] | None = None) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(events() if rows is None else rows)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
