"""The tables of frozen classifiers show what was recorded, and where it is worst."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelmem_paper.experiments.table import load_table
from labelmem_paper.report.adapt_summary import adapt_summary
from labelmem_paper.report.adapt_tables import adapt_tables
from labelmem_paper.report.readme import updated
from labelmem_paper.report.result_files import write_report
from labelmem_paper.report.result_markdown import markdown_of
from report.made_up import made_up
from report.made_up_adapt import FORMS, adapt_results, figure, ran
from report.reading import loaded, rows_of

from labelmem.errors import ConfigError
from labelmem.render.tables import Table, to_markdown

TASKS = ("digits", "mnist", "letters")
METHODS = ("static", "ncm", "lmn-fixed")


def every() -> list[dict[str, object]]:
    return [ran(m, t, s) for m in METHODS for t in TASKS for s in (0, 1)]


def cells(table: Table) -> dict[str, dict[str, str]]:
    """Every row by its name, without marks, and its cells by their headings."""
    heading, _, *rows = rows_of(to_markdown(table, intervals=False))
    plain = [[cell.replace("*", "").replace("†", "") for cell in row] for row in rows]
    return {row[0].rstrip("¹²³⁴"): dict(zip(heading, row, strict=True)) for row in plain}


def titles() -> dict[str, str]:
    return {method: load_table("adapt").row(method).title for method in METHODS}


def mean(method: str, tasks: tuple[str, ...], name: str) -> float:
    values = [figure(method, task, seed, name) for task in tasks for seed in (0, 1)]
    return sum(values) / len(values)


def test_the_summary_has_means_over_the_tasks_of_the_design(tmp_path: Path) -> None:
    table = adapt_summary(adapt_results(tmp_path, every()))
    shown = cells(table)
    for method, title in titles().items():
        for form in FORMS:
            name = "swapped.accuracy_late" if form == "swapped" else f"{form}.accuracy"
            assert shown[title][form] == f"{mean(method, TASKS[:2], name):.1%}"
        losses = [mean(method, TASKS[:2], f"{form}.log_loss") for form in FORMS]
        assert shown[title]["log-loss"] == f"{sum(losses) / 6:.2f}"
    assert "Tasks: digits, mnist." in table.note and "Means over seeds: 0, 1." in table.note


def test_harm_names_the_worst_task_and_form(tmp_path: Path) -> None:
    worst = {"few.gain_known": -0.25, "swapped.gain_known": -0.9, "noisy.gain_known_300": -0.125}
    runs = [ran("static", "digits"), ran("static", "mnist", metrics=worst)]
    main, _ = adapt_tables(adapt_results(tmp_path, runs))
    summary, harm = (cells(table)["the model alone"] for table in main)
    assert summary["worst on known labels"] == "-25.0% (mnist, few)"
    assert summary["worst in 300 steps"] == "-12.5% (mnist, noisy)"
    assert harm["few"] == "-25.0% (mnist)"
    assert harm["noisy, 300 steps"] == "-12.5% (mnist)"
    assert "swapped" not in harm
    better = min(figure("static", task, 0, "new.gain_known") for task in ("digits", "mnist"))
    assert harm["new"] == f"{better:+.1%}"


def test_every_form_has_a_table_of_all_tasks(tmp_path: Path) -> None:
    main, more = adapt_tables(adapt_results(tmp_path, every()))
    assert [len(main), len(more)] == [3, 7]
    new = next(table for table in more if "`new`" in table.caption)
    row = cells(new)["nearest class mean"]
    assert list(row) == ["method", "digits", "mnist", "mean", "letters (left out)"]
    assert row["letters (left out)"] == f"{mean('ncm', ('letters',), 'new.accuracy'):.1%}"
    assert row["mean"] == f"{mean('ncm', TASKS[:2], 'new.accuracy'):.1%}"


def test_tasks_without_a_form_are_no_column(tmp_path: Path) -> None:
    runs = [ran("static", "digits"), ran("static", "checkins", forms=["new"])]
    _, more = adapt_tables(adapt_results(tmp_path, runs))
    columns = {table.caption: [column.title for column in table.columns] for table in more}
    found = {form: next(c for name, c in columns.items() if f"`{form}`" in name) for form in FORMS}
    assert found["new"] == ["method", "digits", "checkins", "mean"]
    assert found["few"] == ["method", "digits", "mean"]


def test_fewer_seeds_and_missing_tasks_are_told(tmp_path: Path) -> None:
    runs = [*every(), ran("knn", "digits")]
    table = adapt_summary(adapt_results(tmp_path, runs))
    assert cells(table)["nearest neighbours"]["new"] == "–"
    assert "Seeds: 0." in table.note


def test_notes_of_rows_stand_below_the_summaries_alone(tmp_path: Path) -> None:
    main, more = adapt_tables(adapt_results(tmp_path, every()))
    note = load_table("adapt").row("lmn-fixed").note
    told = [note in table.note for table in (*main, *more)]
    assert told == [True, True] + [False] * 8


def test_blocks_of_a_page(tmp_path: Path) -> None:
    results = adapt_results(tmp_path, every())
    names = ("adapt-summary", "adapt:main", "adapt:more")
    text = "\n".join(f"<!-- results:{n} -->\n<!-- /results:{n} -->" for n in names)
    update = updated(text, [results])
    assert update.stale == list(names)
    summary, main, more = update.text.split("<!-- /results:")[:3]
    assert summary.count("**A frozen classifier and its users") == 1
    assert main.count("**A frozen classifier and its users") == 3
    assert "The runs" in more and "The runs" not in main
    assert updated(update.text, [results]).stale == []


def test_other_tables_have_no_summary(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="table2 has no summary"):
        markdown_of(loaded(tmp_path, made_up()), "summary")


def test_the_report_shows_them(tmp_path: Path) -> None:
    results = adapt_results(tmp_path, every())
    write_report([results], tmp_path / "report")
    page, text = (
        (tmp_path / "report" / name).read_text("utf-8") for name in ("index.html", "tables.md")
    )
    for table in (table for part in adapt_tables(results) for table in part):
        assert f"<strong>{table.caption}</strong>" in page
        assert to_markdown(table, intervals=False) in text
