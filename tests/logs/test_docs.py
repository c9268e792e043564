"""The how-to page is true: its commands work one after the other, its figures were measured."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from logs.habits import SMALL, events
from typer.testing import CliRunner

from labelmem.cli import app
from labelmem.logs import fit_command

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "log-file.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def what_the_reader_has(folder: Path) -> None:
    """The files that the page names: a log, those of two days after it, and embeddings."""
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    rows = [(user, place, ts) for user, place, ts in events()]
    rows += [("42", place, 1_600_000_000 + 60 * t) for t, place in enumerate(["gym", "home"] * 4)]
    days = {"events": 0, "monday": 10**6, "tuesday": 2 * 10**6}
    for name, later in days.items():
        lines = [f"{user},{place},{ts + later}" for user, place, ts in rows]
        (folder / f"{name}.csv").write_text("\n".join(["user_id,venue,ts", *lines]) + "\n")
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 4)).astype(np.float32)
    labels, users = [list(rng.choice([*some], size=40)) for some in ("abc", "xy")]
    np.savez(folder / "intents.npz", embeddings=vectors, labels=np.array(labels))
    columns = {"vector": vectors.tolist(), "folder": labels, "account": users}
    parquet.write_table(table(columns), folder / "mails.parquet")


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    what_the_reader_has(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fit_command, "recipe_for", lambda *_: SMALL)
    calls = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    assert len(calls) == 11
    for line in calls:
        program, *words = shlex.split(line)
        shown = CliRunner().invoke(app, words)
        assert program == "labelmem" and shown.exit_code == 0, (line, shown.output)
    [text] = [text for kind, text in BLOCKS if kind == "json"]
    written = (tmp_path / "monday.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert list(json.loads(text)) == list(json.loads(written))


def test_the_figures_of_the_page_are_what_was_recorded() -> None:
    record = json.loads((ROOT / "benchmarks" / "logs.json").read_text(encoding="utf-8"))
    table = PAGE.partition("<!-- logs -->\n")[2].partition("<!-- /logs -->")[0]
    assert record["users"] == 10_000 and record["threads"] == "1"
    assert table.strip().splitlines()[2:] == [
        f"| `labelmem {row['command']}` | {row['processor_seconds']:,.0f} "
        f"| {row['events'] / row['processor_seconds']:,.0f} | {row['peak_gib']:.1f} GiB |"
        for row in record["rows"]
    ]
