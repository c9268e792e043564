"""A large log from file to predictions: what `labelmem fit` and `labelmem adapt` take.

A made-up log of users with habits is written, fitted, and taken in with predictions and a report,
each by the command that a user would call, in a process of its own. Told are seconds by the clock
and of a processor, and the most memory that the process held at any time. What else runs on the
computer counts by the clock, so the load before each command is told too; set OMP_NUM_THREADS=1 to
have processor seconds that mean something on a busy one. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
COLUMNS = ["--user", "user_id", "--item", "venue", "--time", "ts"]
_RETURNS = 0.65  # the share of events where a user goes to a place of their own again
_FOLLOWS = 0.5  # the share of those that go where the user went last time after the same place


def habits(path: Path, events: int, users: int, items: int, seed: int = 0) -> None:
    """Write a log: few busy users and many quiet ones, few common places and a long tail."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(rng.gamma(1.5, size=users), 0.02)
    lengths = np.maximum((lengths * events / lengths.sum()).astype(int), 2)
    lengths[: max(events - int(lengths.sum()), 0)] += 1
    popularity = 1.0 / np.arange(1, items + 1) ** 0.9
    popularity = np.cumsum(popularity / popularity.sum())
    rows: list[tuple[int, int, int]] = []
    for user, length in enumerate(lengths.tolist()):
        fresh = np.searchsorted(popularity, rng.random(length)).tolist()
        returns, follows = (rng.random((2, length)) < [[_RETURNS], [_FOLLOWS]]).tolist()
        which = rng.random(length).tolist()
        times = 1_600_000_000 + np.cumsum(rng.integers(60, 86_400, size=length))
        gone: list[int] = []
        after: dict[int, int] = {}
        for t in range(length):
            place = fresh[t]
            if gone and returns[t]:
                place = gone[int(which[t] * len(gone))]
                if follows[t]:
                    place = after.get(gone[-1], place)
            if gone:
                after[gone[-1]] = place
            gone.append(place)
            rows.append((int(times[t]), user, place))
    rows.sort()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("user_id", "venue", "ts"))
        writer.writerows((f"user-{user}", f"venue-{place}", ts) for ts, user, place in rows)


def called(words: list[str]) -> tuple[Row, str]:
    """Run a command of labelmem; what it took, and what it printed."""
    command = [sys.executable, "-m", "labelmem", *words]
    load, start = os.getloadavg()[0], time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for
        printed.seek(0)
        text = printed.read()
    if process.returncode:
        raise SystemExit(f"labelmem {' '.join(words)} ended with {process.returncode}")
    return {
        "command": words[0],
        "seconds": time.perf_counter() - start,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_gib": used.ru_maxrss / 2**20,
        "load_before": load,
    }, text


def measured(folder: Path, events: int, users: int, items: int) -> list[Row]:
    log, model = folder / "events.csv", folder / "model"
    habits(log, events, users, items)
    written = ["--out", str(folder / "predictions.jsonl"), "--report", str(folder / "page.html")]
    rows = []
    for words in (
        ["fit", str(log), *COLUMNS, "--out", str(model), "--json"],
        ["adapt", str(model), str(log), *written, "--json"],
    ):
        row, text = called(words)
        figures = json.loads(text)
        row["events"] = figures.get("events", events)
        row["events_per_second"] = row["events"] / row["seconds"]
        if words[0] == "adapt":  # without starting up, reading the file and the report
            row["taking_in_per_second"] = figures["events_per_second"]
            row["states_mib"] = (model / "users.sqlite").stat().st_size / 2**20
        rows.append(row)
    return rows


def show(rows: list[Row]) -> None:
    headings = ("seconds", "of a processor", "events for each", "peak GiB", "load before")
    table = Table("command", "events", *headings)
    for row in rows:
        table.add_row(
            f"labelmem {row['command']}",
            f"{row['events']:,}",
            f"{row['seconds']:,.0f}",
            f"{row['processor_seconds']:,.0f}",
            f"{row['events'] / row['processor_seconds']:,.0f}",
            f"{row['peak_gib']:.2f}",
            f"{row['load_before']:.1f}",
        )
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, help="keep the files here; it must be empty")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare:
        folder = given.folder or Path(spare)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measured(folder, given.events, given.users, given.items)
    show(rows)
    if given.json is not None:
        threads = os.environ.get("OMP_NUM_THREADS", "not set")
        made = {"users": given.users, "items": given.items, "threads": threads, "rows": rows}
        given.json.write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
