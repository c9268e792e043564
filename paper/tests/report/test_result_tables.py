from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labelmem_paper.experiments.table import Table
from labelmem_paper.report.result_tables import table_of
from labelmem_paper.report.results import DatasetResults, Result, TableResults
from report.made_up import made_up, with_cells
from report.reading import loaded, rows_of

from labelmem.render.tables import to_markdown


def details(table: TableResults) -> str:
    """The methods on the first data set, as Markdown."""
    return to_markdown(table_of(*_first(table)))


def results(metrics: dict[str, float], **fields: Any) -> TableResults:
    """One method of a table that is not shipped yet."""
    published = fields.pop("published", {})
    table = Table("table9", "Later", "images", list(metrics), ["d"], ["lmn"], {}, {}, published)
    made = Result("lmn", [made_up(metrics=metrics, interval={}, **fields)])
    return TableResults(table, "paper", [DatasetResults("d", [made])])


def test_ours_beside_the_papers(tmp_path: Path) -> None:
    runs = [made_up(seed=s, loss=5.5 + s, mrr=0.3) for s in (0, 1)]
    rows = rows_of(details(loaded(tmp_path, made_up("counter", loss=6.5), *runs)))
    assert rows[0] == [
        "method", "log-perplexity", "paper", "MRR", "paper", "µs per token", "seeds",
    ]  # fmt: skip
    assert rows[2] == [
        "counter", "6.50 (6.40 to 6.70)", "–", "0.250 (0.240 to 0.270)", "–", "120.0", "1",
    ]  # fmt: skip
    assert rows[3] == [
        "lmn", "**6.00** (5.90 to 6.20)", "5.54", "**0.300** (0.290 to 0.320)", "0.27", "120.0",
        "2",
    ]  # fmt: skip


def test_the_papers_columns_need_a_figure_of_the_paper(tmp_path: Path) -> None:
    shown = table_of(*_first(loaded(tmp_path, made_up(dataset="synthetic"))))
    assert [column.title for column in shown.columns] == [
        "method", "log-perplexity", "MRR", "µs per token", "seeds",
    ]  # fmt: skip


def test_the_note_tells_extent_and_device(tmp_path: Path) -> None:
    shown = table_of(*_first(loaded(tmp_path, made_up(), made_up(seed=1, tokens=1700))))
    assert shown.caption.endswith("Foursquare check-ins, New York City (fsq-nyc).")
    assert shown.note == (
        "40 test streams and 1,500 to 1,700 tokens for each seed. Timed on cpu, 2 threads."
    )


def test_a_subset_is_marked(tmp_path: Path) -> None:
    part = {"data": {"subset": True}, "dataset": "brightkite"}
    table = loaded(tmp_path, made_up(), made_up(**part))
    notes = [table_of(table, one).note for one in table.datasets]
    assert ["not a reproduction of the paper's" in note for note in notes] == [False, True]


@pytest.mark.parametrize(
    ("older", "told"), [(1, "1 older run was left out"), (2, "2 older runs were left out")]
)
def test_older_settings_are_told(tmp_path: Path, older: int, told: str) -> None:
    runs = [made_up(seed=s, config={"trials": 1}) for s in range(older)]
    new = made_up(config={"trials": 2}, started="2026-03-01T00:00:00+00:00")
    assert told in table_of(*_first(loaded(tmp_path, *runs, new))).note


def test_unequal_settings_are_told(tmp_path: Path) -> None:
    table = loaded(tmp_path, made_up("static"), made_up("lmn", config={"trials": 1}))
    assert "Not all methods ran with the same settings" in table_of(*_first(table)).note


def test_figures_that_the_best_cannot_be_told_from_are_marked(tmp_path: Path) -> None:
    runs = [made_up(m, loss=x) for m, x in (("lmn", 6.0), ("counter", 6.3), ("static", 6.31))]
    rows = rows_of(details(loaded(tmp_path, *runs)))
    figures = {row[0]: row[1] for row in rows[2:]}
    assert figures == {  # bounds 0.1 below and 0.2 above
        "counter": "6.30† (6.20 to 6.50)", "static": "6.31 (6.21 to 6.51)",
        "lmn": "**6.00** (5.90 to 6.20)",
    }  # fmt: skip


def test_what_was_not_run_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    reasons = {"fsq-nyc": {"maml": "Nine days."}, "geolife": {"lmn": "Not true: it was run."}}
    runs = made_up(), made_up("lmn", dataset="geolife")
    table = loaded(tmp_path, *runs, not_run=reasons)
    first, second = (table_of(table, one) for one in table.datasets)
    maml = {row["method"]: row for row in first.rows}["maml"]
    assert (maml["log_perplexity"], maml["mrr"], maml["us"]) == ("–¹", "–¹", None)
    assert (maml["log_perplexity paper"], maml["mrr paper"]) == (6.55, 0.16)
    assert first.note.endswith("\n¹ Nine days.")
    assert [row["method"] for row in second.rows] == ["lmn"]
    assert "Not true" not in second.note


def test_titles_and_notes_of_rows(tmp_path: Path) -> None:
    said = {"lmn": {"title": "LMN", "note": "Ours."}}
    shown = table_of(*_first(loaded(tmp_path, made_up(), made_up("static"), rows=said)))
    assert [row["method"] for row in shown.rows] == ["static", "LMN¹"]
    assert shown.note.endswith("\n¹ Ours.")


def test_memory_sizes_are_rows_and_the_paper_may_name_one(tmp_path: Path) -> None:
    table = loaded(tmp_path, with_cells(100), with_cells(2000), made_up("static"))
    rows = rows_of(details(table))
    assert [row[:2] for row in rows[2:]] == [["static", "–"], ["lmn", "100"], ["lmn", "2,000"]]
    assert [row[3] for row in rows[2:]] == ["–", "–", "–"]  # which size did the paper have?
    table.table.published["fsq-nyc"]["lmn-100"] = {"log_perplexity": 1.25}  # type: ignore[index]
    assert [row[3] for row in rows_of(details(table))[2:]] == ["–", "1.25", "–"]
    assert rows_of(details(loaded(tmp_path, with_cells(100))))[2][3] == "5.54"


def test_metrics_of_other_tables() -> None:
    published = {"d": {"lmn": {"accuracy": 0.86, "shot1": 0.526}}}
    metrics = {"accuracy": 0.875, "accuracy_new": 0.5, "shot1": 0.25, "perplexity": 77.62}
    rows = rows_of(details(results(metrics, published=published)))
    assert rows[0][1:-2] == [
        "accuracy", "paper", "accuracy, new", "1-shot accuracy", "paper", "perplexity",
    ]  # fmt: skip
    assert rows[2][1:-2] == ["87.5%", "86.0%", "50.0%", "25.0%", "52.6%", "77.6"]


@pytest.mark.parametrize(
    ("metric", "best"),
    [("perplexity", 1.0), ("log_perplexity", 1.0), ("bits", 1.0), ("floored", 1.0),
     ("mrr", 2.0), ("accuracy_seen", 2.0), ("shot3", 2.0), ("charm", None)],
)  # fmt: skip
def test_which_end_is_bold(metric: str, best: float | None) -> None:
    one, two = (results({metric: value}).datasets[0].results[0] for value in (1.0, 2.0))
    table = results({metric: 0.0})
    shown = table_of(table, DatasetResults("d", [one, two])).shown()
    assert [row[1].best for row in shown] == [best == 1.0, best == 2.0]


def _first(table: TableResults) -> tuple[TableResults, DatasetResults]:
    return table, table.datasets[0]
