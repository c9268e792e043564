from __future__ import annotations

import os
from pathlib import Path

import pytest
from labelmem_paper.datasets.stats import StatRow
from labelmem_paper.report import readme as module
from labelmem_paper.report.readme import block_names, updated
from labelmem_paper.report.result_markdown import markdown_of
from labelmem_paper.report.results import TableResults, load_results
from report.made_up import keep, made_up

from labelmem.errors import ConfigError

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/results.md")
HINT = f"run `labelmem-paper report {' '.join(f'--readme {page}' for page in PAGES)}` and commit it"


def committed(page: str) -> tuple[str, list[TableResults]]:
    """A page with result blocks, and the records beside it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert block_names(text), f"{page} has no result tables"
    return text, load_results(ROOT / "results")


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_show_what_is_recorded(page: str) -> None:
    text, tables = committed(page)
    assert updated(text, tables, datasets=False).stale == [], HINT


def test_the_front_page_shows_what_is_recorded() -> None:
    text = (ROOT.parent / "README.md").read_text(encoding="utf-8")
    stale = updated(text, load_results(ROOT / "results"), datasets=False).stale
    assert stale == [], "run `labelmem-paper report --readme ../README.md` and commit it"


def test_main_and_more_are_all_of_a_table() -> None:
    for name in (table.name for table in load_results(ROOT / "results")):
        both = {f"{name}:main" in (ROOT / PAGES[0]).read_text("utf-8")}
        both.add(f"{name}:more" in (ROOT / PAGES[1]).read_text("utf-8"))
        assert both == {True}, f"{name} is recorded, and not shown"


@pytest.mark.data
def test_the_readme_shows_the_data_sets_as_they_are() -> None:
    if not os.environ.get("LABELMEM_DATA"):
        pytest.skip("LABELMEM_DATA names no folder with the real data sets")
    text, tables = committed("README.md")
    assert "table1" not in updated(text, tables).stale, HINT


@pytest.fixture
def tables(tmp_path: Path) -> list[TableResults]:
    return load_results(keep(tmp_path, [made_up(), made_up("static", loss=9.0)]))


def block(name: str, content: str) -> str:
    return f"<!-- results:{name} -->\n{content}<!-- /results:{name} -->"


def test_a_block_is_made_from_the_records_and_the_rest_stays(tables: list[TableResults]) -> None:
    old = block("table2", "old\n")
    text = f"# Title\n\n{old}\n\nMore `<!-- results:x -->`.\n"
    update = updated(text, tables)
    assert update.stale == ["table2"]
    inside = f"\n{markdown_of(tables[0])}\n\n"
    assert update.text == text.replace("old\n", inside)
    assert "| **6.00** ±.15 (.250) |" in update.text
    again = updated(update.text, tables)
    assert again.stale == [] and again.text == update.text


def test_the_parts_of_a_block(tables: list[TableResults]) -> None:
    text = block("table2:main", "") + "\n" + block("table2:more", "")
    update = updated(text, tables)
    assert update.stale == ["table2:main", "table2:more"]
    main, more = update.text.split("<!-- /results:table2:main -->")
    assert "6.00" in main and "The runs" not in main
    assert "The runs" in more and "every method on every data set" not in more
    rows = {line for line in markdown_of(tables[0]).splitlines() if line.startswith("|")}
    assert rows <= set(update.text.splitlines())


def test_an_empty_block_is_filled(tables: list[TableResults]) -> None:
    assert updated(block("table2", ""), tables).stale == ["table2"]


def test_one_changed_figure_is_noticed(tables: list[TableResults]) -> None:
    text = updated(block("table2", ""), tables).text
    assert updated(text, tables).stale == []
    assert updated(text.replace("6.00", "5.99"), tables).stale == ["table2"]


def test_a_readme_without_blocks_is_left_alone(tables: list[TableResults]) -> None:
    update = updated("# Title\n", tables)
    assert (update.text, update.stale, update.skipped) == ("# Title\n", [], [])


def test_a_block_without_records(tables: list[TableResults]) -> None:
    with pytest.raises(ConfigError, match="results:table7, but no record of table7"):
        updated(block("table7", ""), tables)


def test_a_block_without_end(tables: list[TableResults]) -> None:
    with pytest.raises(ConfigError, match="close it with a line <!-- /results:table2 -->"):
        updated("<!-- results:table2 -->\n\nText.\n", tables)


def test_table1_is_left_as_it_is_where_data_sets_are_missing(
    tables: list[TableResults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABELMEM_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = block("table1", "kept\n")
    update = updated(text, tables)
    assert (update.text, update.stale) == (text, [])
    (reason,) = update.skipped
    assert reason.startswith("table1: brightkite, fsq-nyc")
    assert reason.endswith("not on this computer")


def test_table1_is_made_from_the_data_sets(
    tables: list[TableResults], monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelmem_paper.datasets import info, stats

    paper = info("fsq-nyc").paper
    assert paper is not None
    rows = [StatRow("fsq-nyc", paper, paper, form="raw")]
    monkeypatch.setattr(module, "_missing_datasets", list)
    monkeypatch.setattr(stats, "table1", lambda: rows)
    update = updated(block("table1", "old\n"), tables)
    assert update.stale == ["table1"]
    assert "| | ours | 670 | 264 | 90 | 8,325 | raw |" in update.text
