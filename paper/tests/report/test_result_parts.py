"""Times in parts, with figures nobody measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelmem_paper.report.result_markdown import markdown_of
from labelmem_paper.report.result_page import page_of
from labelmem_paper.report.result_parts import parts_of
from report.made_up import Record, made_up
from report.reading import loaded, rows_of

from labelmem.render.tables import to_markdown


def timed(method: str, memory: float, **changes: Any) -> Record:
    parts = {"us_model": 10.0, "us_memory": memory, "us_softmax": 40.0}
    return made_up(method, us_per_token=10.0 + memory, **parts, **changes)


def test_model_memory_and_softmax_side_by_side(tmp_path: Path) -> None:
    whole = made_up("lmn-paper", us_per_token=900.0, us_softmax=40.0)
    table = loaded(tmp_path, timed("static", 0.0), timed("lmn-fixed", 60.0), whole)
    parts = parts_of(table, table.datasets[0])
    assert parts is not None
    assert rows_of(to_markdown(parts, intervals=False))[2:] == [
        ["static", "**6.00**", "10.0", "10.0", "0.0", "40.0", "–"],
        ["lmn-fixed", "**6.00**", "70.0", "10.0", "60.0", "40.0", "1.50"],
        ["lmn-paper", "**6.00**", "900.0", "–", "–", "40.0", "–"],
    ]
    assert "Timed on cpu, 2 threads." in parts.note


def test_times_are_averaged_over_seeds(tmp_path: Path) -> None:
    table = loaded(tmp_path, timed("lmn", 20.0), timed("lmn", 40.0, seed=1))
    parts = parts_of(table, table.datasets[0])
    assert parts is not None
    (row,) = parts.rows
    assert (row["us"], row["us_memory"], row["share"]) == (40.0, 30.0, 0.75)


def test_records_without_parts_have_no_such_table(tmp_path: Path) -> None:
    table = loaded(tmp_path, made_up("lmn"))
    assert parts_of(table, table.datasets[0]) is None


def test_parts_stand_in_the_readme_and_on_the_page(tmp_path: Path) -> None:
    table = loaded(tmp_path, timed("static", 0.0), timed("lmn", 20.0))
    assert "**Where the time goes: fsq-nyc.**" in markdown_of(table)
    assert "many streams" not in markdown_of(table)
    assert "Where the time goes: fsq-nyc." in page_of([table], {}).render()
