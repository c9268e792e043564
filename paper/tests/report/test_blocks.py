from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from labelmem_paper.report.result_markdown import markdown_of
from labelmem_paper.report.result_page import page_of
from labelmem_paper.report.result_tables import table_of
from labelmem_paper.report.results import TableResults
from report.made_up import Record, made_up
from report.reading import loaded, rows_of, variant

ROWS = {
    "lmn-large": {"block": "", "title": "LMN, large"},
    "lmn-better": {"block": "better network", "title": "LMN, better"},
    "static-better": {"block": "better network"},
}


def table(folder: Path, *more: Record) -> TableResults:
    runs = [
        made_up("static"),
        made_up("lmn"),
        variant("lmn-large", loss=5.0),
        variant("lmn-better", loss=4.0),
        variant("static-better", "static", loss=7.0),
        variant("lmn-blind"),
    ]
    return loaded(folder, *runs, *more, rows=ROWS)


def test_rows_stand_in_the_part_that_the_table_says(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert made.compared == ["static", "lmn", "lmn-large"]
    assert made.blocks == {"better network": ["lmn-better", "static-better"]}
    assert made.ablation == ["lmn", "lmn-blind"]


def test_a_part_has_all_metrics_and_a_best_row_of_its_own(tmp_path: Path) -> None:
    made = table(tmp_path)
    found = table_of(made, made.datasets[0], "better network")
    assert "better network" in found.caption
    assert [row["method"] for row in found.rows] == ["LMN, better", "static-better"]
    best = [row[0].text for row in found.shown() if row[1].best]
    assert best == ["LMN, better"]


def test_a_readme_of_one_data_set_shows_every_metric_and_part(tmp_path: Path) -> None:
    made = table(tmp_path)
    text = markdown_of(replace(made, table=replace(made.table, datasets=["fsq-nyc"])))
    headings = [row for row in rows_of(text) if row[0] in ("method", "variant")]
    assert [row[0] for row in headings] == ["method", "method", "variant"]
    assert "log-perplexity" in headings[0] and "MRR" in headings[0]
    several = markdown_of(table(tmp_path / "two", made_up("lmn", dataset="geolife")))
    assert "every method on every data set" in several and "better network" in several


def test_the_page_shows_the_parts_where_they_have_records(tmp_path: Path) -> None:
    made = table(tmp_path, made_up("lmn", dataset="geolife"))
    page = page_of([made], {}).render()
    assert "better network: Foursquare" in page and "better network: Geolife" not in page


def test_metrics_that_no_record_has_get_no_column(tmp_path: Path) -> None:
    made = loaded(tmp_path, made_up("lmn", metrics={"mrr": 0.5}, interval={}))
    assert [column.key for column in table_of(made, made.datasets[0]).columns][:2] == [
        "method",
        "mrr",
    ]
