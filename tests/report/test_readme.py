from __future__ import annotations

import os
from pathlib import Path

import pytest
from report.made_up import keep, made_up

from labelmem.data.stats import StatRow
from labelmem.errors import ConfigError
from labelmem.report import readme as module
from labelmem.report.readme import block_names, updated
from labelmem.report.result_markdown import markdown_of
from labelmem.report.results import TableResults, load_results

ROOT = Path(__file__).parents[2]
HINT = "run `labelmem report --readme README.md` and commit the result"


def committed() -> tuple[str, list[TableResults]]:
    """The README and the records beside it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if not block_names(text):
        pytest.skip("the README has no result tables")
    if not list((ROOT / "results").glob("*.jsonl")):
        pytest.skip("there are no records in results/")
    return text, load_results(ROOT / "results")


def test_the_readme_shows_what_is_recorded() -> None:
    text, tables = committed()
    assert updated(text, tables, datasets=False).stale == [], HINT


@pytest.mark.data
def test_the_readme_shows_the_data_sets_as_they_are() -> None:
    if not os.environ.get("LABELMEM_DATA"):
        pytest.skip("LABELMEM_DATA names no folder with the real data sets")
    text, tables = committed()
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
    from labelmem.data import info, stats

    paper = info("fsq-nyc").paper
    assert paper is not None
    rows = [StatRow("fsq-nyc", paper, paper, form="raw")]
    monkeypatch.setattr(module, "_missing_datasets", list)
    monkeypatch.setattr(stats, "table1", lambda: rows)
    update = updated(block("table1", "old\n"), tables)
    assert update.stale == ["table1"]
    assert "| | ours | 670 | 264 | 90 | 8,325 | raw |" in update.text
