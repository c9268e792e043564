from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report.made_up import Record, keep, made_up, with_cells

from labelmem.experiments.table import Table
from labelmem.report.result_tables import NOTE, markdown_of, overview_of, table_of
from labelmem.report.results import DatasetResults, Result, TableResults, load_results
from labelmem.report.tables import to_markdown


def loaded(folder: Path, *records: Record) -> TableResults:
    (table,) = load_results(keep(folder, records))
    return table


def rows_of(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def results(metrics: dict[str, float], **fields: Any) -> TableResults:
    """One method of a table that is not shipped yet."""
    published = fields.pop("published", {})
    table = Table("table9", "Later", "images", list(metrics), ["d"], ["lmn"], {}, {}, published)
    made = Result("lmn", [made_up(metrics=metrics, interval={}, **fields)])
    return TableResults(table, "paper", [DatasetResults("d", [made])])


def test_ours_beside_the_papers(tmp_path: Path) -> None:
    runs = [made_up(seed=s, loss=5.5 + s, mrr=0.3) for s in (0, 1)]
    rows = rows_of(markdown_of(loaded(tmp_path, made_up("counter", loss=6.5), *runs)))
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


def test_the_caption_tells_the_data_set_its_extent_and_the_command(tmp_path: Path) -> None:
    text = markdown_of(loaded(tmp_path, made_up(tokens=1500), made_up(seed=1, tokens=1700)))
    assert "**Foursquare check-ins, New York City** (`fsq-nyc`)" in text
    assert "40 test streams and 1,500 to 1,700 tokens for each seed." in text
    assert "Made by `labelmem reproduce table2 --dataset fsq-nyc`." in text
    assert "Timed on cpu, 2 threads." in text
    assert text.endswith(NOTE)
    for absent in ("subset", "left out", "Not all methods"):
        assert absent not in text


def test_a_subset_is_marked(tmp_path: Path) -> None:
    part = {"data": {"subset": True}, "dataset": "brightkite"}
    table = loaded(tmp_path, made_up(), made_up(**part))
    text = markdown_of(table)
    assert text.count("not a reproduction") == 1
    after = text[text.index("(`brightkite`)") :]
    assert "The files are a subset of what was published: not a reproduction" in after
    titles = [column.title for column in overview_of(table).columns]
    assert titles == ["method", "fsq-nyc", "brightkite (subset)"]
    assert "not a reproduction" in table_of(table, table.datasets[1]).note


@pytest.mark.parametrize(
    ("older", "told"), [(1, "1 older run was left out"), (2, "2 older runs were left out")]
)
def test_older_settings_are_told(tmp_path: Path, older: int, told: str) -> None:
    runs = [made_up(seed=s, config={"trials": 1}) for s in range(older)]
    new = made_up(config={"trials": 2}, started="2026-03-01T00:00:00+00:00")
    assert told in markdown_of(loaded(tmp_path, *runs, new))


def test_unequal_settings_are_told(tmp_path: Path) -> None:
    table = loaded(tmp_path, made_up("static"), made_up("lmn", config={"trials": 1}))
    assert "Not all methods ran with the same settings" in markdown_of(table)


def test_the_overview_has_every_method_on_every_data_set(tmp_path: Path) -> None:
    table = loaded(
        tmp_path,
        made_up("lmn", loss=5.0),
        made_up("static", loss=4.0),
        made_up("lmn", loss=3.0, dataset="geolife"),
    )
    assert rows_of(to_markdown(overview_of(table), intervals=False))[2:] == [
        ["static", "**4.00**", "–"],
        ["lmn", "5.00", "3.00"],
    ]
    assert to_markdown(overview_of(table), intervals=False) in markdown_of(table)


def test_memory_sizes_are_rows_and_the_paper_may_name_one(tmp_path: Path) -> None:
    table = loaded(tmp_path, with_cells(100), with_cells(2000), made_up("static"))
    rows = rows_of(markdown_of(table))
    assert [row[:2] for row in rows[2:]] == [["static", "–"], ["lmn", "100"], ["lmn", "2,000"]]
    assert [row[3] for row in rows[2:]] == ["–", "–", "–"]  # which size did the paper have?
    table.table.published["fsq-nyc"]["lmn-100"] = {"log_perplexity": 1.25}  # type: ignore[index]
    assert [row[3] for row in rows_of(markdown_of(table))[2:]] == ["–", "1.25", "–"]
    (one,) = load_results(keep(tmp_path, [with_cells(100)]))
    assert rows_of(markdown_of(one))[2][3] == "5.54"


def test_metrics_of_other_tables() -> None:
    published = {"d": {"lmn": {"accuracy": 0.86, "shot1": 0.526}}}
    metrics = {"accuracy": 0.875, "accuracy_new": 0.5, "shot1": 0.25, "perplexity": 77.62}
    rows = rows_of(markdown_of(results(metrics, published=published)))
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
