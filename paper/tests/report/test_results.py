from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from labelmem_paper.report.results import DatasetResults, load_results
from report.made_up import Record, keep, made_up, with_cells

from labelmem.errors import DataError


def load_one(folder: Path, *records: Record) -> DatasetResults:
    (table,) = load_results(keep(folder, records))
    (dataset,) = table.datasets
    return dataset


def test_seeds_are_averaged_and_so_are_their_bounds(tmp_path: Path) -> None:
    runs = [made_up(seed=s, loss=x, us_per_token=100.0 * s) for s, x in ((2, 5.0), (0, 7.0))]
    (result,) = load_one(tmp_path, *runs).results
    assert result.seeds == [0, 2]
    assert result.us_per_token == 100
    estimate = result.estimate("log_perplexity")
    assert estimate is not None
    assert estimate.value == 6
    assert math.isclose(estimate.low, (4.9 + 6.9) / 2)
    assert math.isclose(estimate.high, (5.2 + 7.2) / 2)
    assert result.estimate("charm") is None


def test_a_metric_that_only_some_seeds_have_is_averaged_over_those(tmp_path: Path) -> None:
    runs = [made_up(seed=s) for s in (0, 1)]
    del runs[0]["metrics"]["mrr"]
    (result,) = load_one(tmp_path, *runs).results
    estimate = result.estimate("mrr")
    assert estimate is not None
    assert estimate.value == 0.25


def test_one_stream_has_no_interval(tmp_path: Path) -> None:
    nothing = {"log_perplexity": None, "mrr": None}  # as the runner writes it
    (result,) = load_one(tmp_path, made_up(interval=nothing), made_up(seed=1)).results
    estimate = result.estimate("mrr")
    assert estimate is not None
    assert math.isnan(estimate.low) and math.isnan(estimate.high)


def test_methods_and_data_sets_come_in_the_order_of_the_table(tmp_path: Path) -> None:
    pairs = itertools.product(("mine", "lmn", "counter", "another"), ("yoochoose", "fsq-nyc", "x"))
    keep(tmp_path, [made_up(method, dataset=dataset) for method, dataset in pairs])
    (table,) = load_results(tmp_path)
    assert [one.dataset for one in table.datasets] == ["fsq-nyc", "yoochoose", "x"]
    for one in table.datasets:
        methods = [result.method for result in one.results]
        assert methods == ["counter", "lmn", "another", "mine"]


@pytest.mark.parametrize("newest_first", [True, False])
def test_only_the_newest_settings_count(tmp_path: Path, newest_first: bool) -> None:
    old = {"config": {"trials": 3}, "started": "2026-01-01T23:30:00+00:00"}
    runs = [made_up(seed=s, loss=1.0, **old) for s in (0, 1, 2)]
    # An hour later, although the text of its time sorts before the others.
    new = {"config": {"trials": 24}, "started": "2026-01-01T22:30:00-02:00"}
    runs.append(made_up(seed=1, loss=9.0, **new))
    dataset = load_one(tmp_path, *(reversed(runs) if newest_first else runs))
    (result,) = dataset.results
    assert result.seeds == [1]
    assert result.left_out == dataset.left_out == 3
    estimate = result.estimate("log_perplexity")
    assert estimate is not None
    assert estimate.value == 9


def test_settings_of_each_method_are_judged_apart(tmp_path: Path) -> None:
    later = {"config": {"trials": 24, "batch_size": 8}, "started": "2026-02-01T00:00:00+00:00"}
    dataset = load_one(tmp_path, made_up("static"), made_up("lmn", **later))
    assert [result.method for result in dataset.results] == ["static", "lmn"]
    assert dataset.left_out == 0
    assert not dataset.alike
    assert load_one(tmp_path, made_up("static"), made_up("lmn")).alike


def test_settings_that_the_table_gives_a_method_are_no_surprise(tmp_path: Path) -> None:
    fewer = made_up("maml", config=made_up("maml")["config"] | {"trials": 8})
    assert load_one(tmp_path, made_up("static"), fewer).alike  # table 2 gives it fewer trials


def test_options_of_a_method_do_not_make_it_another_experiment(tmp_path: Path) -> None:
    assert load_one(tmp_path, made_up("static"), with_cells(5)).alike


def test_memory_sizes_stand_side_by_side(tmp_path: Path) -> None:
    runs = [with_cells(cells, seed=seed) for cells in (100, 20) for seed in (0, 1)]
    dataset = load_one(tmp_path, made_up("static"), *runs)
    assert [(one.method, one.cells, one.seeds) for one in dataset.results] == [
        ("static", None, [0]),
        ("lmn", 20, [0, 1]),
        ("lmn", 100, [0, 1]),
    ]
    assert [(one.method, one.cells) for one in dataset.largest()] == [
        ("static", None),
        ("lmn", 100),
    ]


def test_other_sizes_are_not_mixed_in(tmp_path: Path) -> None:
    keep(tmp_path, [made_up(), made_up(seed=1, size="smoke", loss=99.0)])
    (table,) = load_results(tmp_path)
    assert table.datasets[0].results[0].seeds == [0]
    (smoke,) = load_results(tmp_path, "smoke")
    assert smoke.datasets[0].results[0].seeds == [1]
    assert (
        smoke.command("fsq-nyc") == "labelmem-paper reproduce table2 --dataset fsq-nyc --size smoke"
    )


def test_a_table_that_is_not_shipped_is_shown_from_its_records(tmp_path: Path) -> None:
    keep(tmp_path, [made_up(table="mine")], "mine")
    keep(tmp_path, [made_up()])
    mine, shipped = load_results(tmp_path)
    assert (mine.name, shipped.name) == ("mine", "table2")
    assert mine.table.metrics == ["log_perplexity", "mrr"]
    assert mine.command("d") == "labelmem-paper reproduce mine.toml --dataset d"
    assert shipped.command("d") == "labelmem-paper reproduce table2 --dataset d"


def test_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no records in .*run `labelmem-paper reproduce table2` first"
    ):
        load_results(tmp_path / "nowhere")
    keep(tmp_path, [made_up(size="smoke")])
    with pytest.raises(DataError, match="of size smoke, none of size paper; choose one with"):
        load_results(tmp_path)


def test_a_line_that_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "table2.jsonl").write_text('{"table": "table2", "size": "paper"}\n')
    with pytest.raises(DataError, match=r"table2\.jsonl holds a line without dataset, method"):
        load_results(tmp_path)
