from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelmem_paper.cli import app
from report.made_up import keep, made_up
from typer.testing import CliRunner

runner = CliRunner()
BLOCK = "# Mine\n\n<!-- results:table2 -->\n<!-- /results:table2 -->\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder without data sets, with records of two methods."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LABELMEM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keep(tmp_path / "results", [made_up(), made_up("static", loss=9.0)])
    return tmp_path


def test_report_writes_into_the_results(here: Path) -> None:
    shown = runner.invoke(app, ["report"])
    assert shown.exit_code == 0, shown.output
    assert "wrote results/report/index.html and 5 more files" in shown.stdout
    assert "5.54" in shown.stdout  # the paper's figure, on the terminal too
    assert (here / "results/report/index.html").exists()
    assert (here / "results/report/tables.md").exists()


def test_plots_for_documents(here: Path) -> None:
    shown = runner.invoke(app, ["report", "--plots", "docs/plots"])
    assert shown.exit_code == 0, shown.output
    assert "and 6 more files" in shown.stdout
    assert [path.name for path in (here / "docs/plots").iterdir()] == [
        "table2-fsq-nyc-position.svg"
    ]


def test_figures_as_json(here: Path) -> None:
    shown = runner.invoke(app, ["report", "--json", "--out", "elsewhere"])
    answer = json.loads(shown.stdout)
    assert [row["method"] for row in answer["rows"]] == ["static", "lmn"]
    assert "elsewhere/index.html" in answer["files"]
    assert not (here / "results/report").exists()


def test_the_readme_is_renewed_and_checked(here: Path) -> None:
    readme = here / "README.md"
    readme.write_text(BLOCK)
    stale = runner.invoke(app, ["report", "--check"])
    assert stale.exit_code == 1
    assert "README.md: the block results:table2 does not match the records" in stale.stderr
    assert "`labelmem-paper report --readme README.md`" in stale.stderr
    assert readme.read_text() == BLOCK and not (here / "results/report").exists()

    renewed = runner.invoke(app, ["report", "--readme", "README.md"])
    assert renewed.exit_code == 0, renewed.output
    assert "README.md: renewed table2" in renewed.stderr
    assert "| **6.00** ±.15 (.250) |" in readme.read_text()

    fresh = runner.invoke(app, ["report", "--check"])
    assert fresh.exit_code == 0, fresh.output
    assert "README.md matches the records" in fresh.stdout

    keep(here / "results", [made_up(), made_up("static", loss=8.0)])
    answer = runner.invoke(app, ["report", "--check", "--json"])
    assert answer.exit_code == 1
    assert json.loads(answer.stdout) == {"stale": ["table2"], "skipped": []}


def test_table1_is_skipped_without_data(here: Path) -> None:
    (here / "README.md").write_text("<!-- results:table1 -->\nkept\n<!-- /results:table1 -->\n")
    shown = runner.invoke(app, ["report", "--check"])
    assert shown.exit_code == 0
    assert "skipped the block results:table1: brightkite" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--results", "nowhere"], "there are no records in nowhere"),
        (["--size", "smoke"], "none of size smoke"),
        (["--readme", "none.md"], "cannot read none.md"),
        (["--check"], "cannot read README.md"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: list[str], told: str, here: Path) -> None:
    shown = runner.invoke(app, ["report", *arguments])
    assert shown.exit_code == 2
    assert told in shown.stderr
    assert not (here / "results/report").exists()


def test_a_bad_block_stops_before_anything_is_written(here: Path) -> None:
    (here / "README.md").write_text(BLOCK.replace("table2", "table7"))
    shown = runner.invoke(app, ["report", "--readme", "README.md"])
    assert shown.exit_code == 2
    assert "no record of table7" in shown.stderr
    assert not (here / "results/report").exists()
