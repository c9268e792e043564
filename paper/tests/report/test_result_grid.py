from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from labelmem_paper.report.result_grid import grid_of, printed_of
from labelmem_paper.report.results import TableResults
from report.made_up import DATASETS, METHODS, made_up, many, with_cells
from report.reading import loaded, rows_of, variant

from labelmem.render.tables import to_markdown


def grid(table: TableResults) -> dict[str, list[str]]:
    """The cells behind each method, as they are read."""
    return {row[0]: row[1:] for row in rows_of(to_markdown(grid_of(table), intervals=False))[2:]}


def test_all_methods_on_all_data_sets_fit_on_a_line_each(tmp_path: Path) -> None:
    table = loaded(tmp_path, *many())
    text = to_markdown(grid_of(table), intervals=False)
    cells = grid(table)
    assert set(cells) == set(METHODS) and len(cells) == 17
    assert {len(row) for row in cells.values()} == {len(DATASETS)}
    assert max(len(line) for line in text.splitlines()) < 130
    # One best figure in each column, whoever has it.
    assert sum(line.count("**") for line in text.splitlines()) == 2 * len(DATASETS)


def test_a_cell_is_the_figure_its_interval_and_the_other_metric(tmp_path: Path) -> None:
    bounds = {"log_perplexity": [6.2, 6.29], "mrr": [0.2, 0.3]}
    runs = [made_up("lmn", seed, 6.26, 0.2334, interval=bounds) for seed in (0, 1)]
    table = loaded(tmp_path, *runs, made_up("static", 0, 9.0), made_up("static", 1, 9.0))
    assert grid(table) == {"static": ["9.00 ±.15 (.250)"], "lmn": ["**6.26** ±.04 (.233)"]}
    assert grid_of(table).note == "In each cell: log-perplexity ± half of its 95 % interval (MRR)."


def test_a_cell_has_room_for_three_metrics_and_writes_whole_zeros(tmp_path: Path) -> None:
    metrics = {"zeal": 0.5, "bits": 8.0, "floored": 0.0, "mrr": 0.25, "log_perplexity": 6.0}
    table = loaded(tmp_path, made_up(table="mine", metrics=metrics, interval={}))
    assert grid(table) == {"lmn": ["6.00 (.250, 8.00)"]}
    assert grid_of(table).note.endswith("interval (MRR, bits per token).")
    (row,) = grid(_with(table, "mrr", "floored")).values()
    assert row == ["0.250 (0)"]


def _with(table: TableResults, *metrics: str) -> TableResults:
    return replace(table, table=replace(table.table, metrics=metrics))


def test_one_stream_has_no_interval(tmp_path: Path) -> None:
    nothing = {"log_perplexity": None, "mrr": None}
    runs = made_up("lmn", interval=nothing), made_up("static", loss=6.0, interval=nothing)
    table = loaded(tmp_path, *runs)
    assert grid(table) == {"static": ["**6.00** (.250)"], "lmn": ["**6.00** (.250)"]}


@pytest.mark.parametrize(
    ("bounds", "marked"),
    [((6.1, 6.5), True), ((6.2, 6.5), True), ((6.21, 6.5), False), (None, False)],
    ids=["overlapping", "touching", "apart", "unknown"],
)
def test_what_overlaps_the_best_is_marked(
    bounds: tuple[float, float] | None, marked: bool, tmp_path: Path
) -> None:
    interval = {"log_perplexity": bounds, "mrr": [0.2, 0.3]}
    other = made_up("counter", loss=6.4, interval=interval)
    cells = grid(loaded(tmp_path, made_up("lmn"), other))  # lmn lies between 5.9 and 6.2
    assert cells["counter"][0].startswith("6.40†") is marked
    assert cells["lmn"][0].startswith("**6.00** ")


def test_missing_figures_have_reasons_or_only_dashes(tmp_path: Path) -> None:
    reasons = {
        "fsq-nyc": {"maml": "Nine days."},
        "geolife": {"maml": "An epoch took 5 hours.", "counter": "Nine days."},
    }
    runs = made_up("lmn"), made_up("counter"), made_up("static", dataset="geolife")
    table = loaded(tmp_path, *runs, not_run=reasons)
    cells = grid(table)
    assert cells["counter"][1] == "–¹" and cells["maml"] == ["–¹", "–²"]
    assert cells["lmn"][1] == "–"
    assert grid_of(table).note.split("\n")[1:] == ["¹ Nine days.", "² An epoch took 5 hours."]


def test_fewer_seeds_are_told(tmp_path: Path) -> None:
    runs = [made_up("lmn", seed) for seed in range(3)]
    table = loaded(tmp_path, *runs, made_up("static", loss=9.0))
    assert grid(table)["static"] == ["9.00 ±.15 (.250)¹"]
    assert grid_of(table).note.endswith("\n¹ 1 of 3 seeds.")


def test_headings_say_what_is_a_subset_but_not_of_the_papers_figures(tmp_path: Path) -> None:
    part = made_up(dataset="brightkite", data={"subset": True})
    table = loaded(tmp_path, made_up(), part)
    printed = printed_of(table)
    assert printed is not None
    titles = [[column.title for column in one.columns] for one in (grid_of(table), printed)]
    assert titles == [
        ["method", "fsq-nyc", "brightkite (subset)"], ["method", "fsq-nyc", "brightkite"],
    ]  # fmt: skip


def test_what_the_paper_printed(tmp_path: Path) -> None:
    printed = printed_of(loaded(tmp_path, made_up(), made_up(dataset="geolife")))
    assert printed is not None
    rows = {row[0]: row[1:] for row in rows_of(to_markdown(printed))[2:]}
    assert rows["maml"] == ["6.55 (.16)", "–"]
    assert rows["lmn-paper, lmn"] == ["5.54 (.27)", "1.08 (.83)"]  # the paper has only one
    assert printed_of(loaded(tmp_path, made_up(dataset="synthetic"))) is None


def test_memory_sizes_are_rows(tmp_path: Path) -> None:
    cells = grid(loaded(tmp_path, with_cells(2000), with_cells(100), made_up("static")))
    assert list(cells) == ["static", "lmn, 100 cells", "lmn, 2,000 cells"]


def test_variants_stand_elsewhere(tmp_path: Path) -> None:
    table = loaded(tmp_path, made_up(), made_up("static"), variant("no-key", loss=1.0))
    assert list(grid(table)) == ["static", "lmn"]
    assert "**" in grid(table)["lmn"][0]  # and do not win there
