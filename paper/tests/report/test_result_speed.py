from __future__ import annotations

from pathlib import Path

from labelmem_paper.report.result_speed import speed_of
from labelmem_paper.report.results import TableResults
from report.made_up import METHODS, Record, made_up, many
from report.reading import loaded, rows_of, variant

from labelmem.render.tables import Table, to_markdown


def timed(method: str, us: float, **changes: object) -> Record:
    return made_up(method, us_per_token=us, parameters=1234567, **changes)


def speed(table: TableResults) -> Table:
    found = speed_of(table)
    assert found is not None
    return found


def test_costs_on_the_first_data_set_in_units_of_lmn(tmp_path: Path) -> None:
    runs = timed("lmn", 200.0), timed("unigram", 0.5), timed("lmn-paper", 4300.0)
    table = loaded(tmp_path, *runs, timed("static", 1.0, dataset="geolife"), variant("no-key"))
    assert rows_of(to_markdown(speed(table))) == [
        ["method", "parameters", "many streams: µs per token", "times lmn"],
        ["---", "---:", "---:", "---:"],
        ["unigram", "1,234,567", "0.5", "0.0025"],
        ["lmn-paper", "1,234,567", "4,300.0", "22"],
        ["lmn", "1,234,567", "200.0", "1"],
    ]
    assert speed(table).note == "Many streams timed on cpu, 2 threads."


def test_times_of_different_devices_are_not_compared(tmp_path: Path) -> None:
    runs = timed("lmn", 10.0, device="GPU"), timed("static", 20.0)
    table = speed(loaded(tmp_path, *runs))
    assert {row["method"]: row["lockstep times"] for row in table.rows} == {
        "static": None,
        "lmn": "1",
    }
    assert table.note == "Many streams timed on GPU and cpu, 2 threads."


def test_without_lmn_there_is_no_unit(tmp_path: Path) -> None:
    table = speed(loaded(tmp_path, made_up("static")))
    assert [column.key for column in table.columns] == ["method", "parameters", "lockstep"]
    assert rows_of(to_markdown(table))[2] == ["static", "–", "120.0"]  # an older record


def test_nothing_was_timed(tmp_path: Path) -> None:
    run = made_up()
    del run["us_per_token"]
    assert speed_of(loaded(tmp_path, run)) is None


def test_all_of_table_2(tmp_path: Path) -> None:
    assert len(speed(loaded(tmp_path, *many(seeds=1, variants=True))).rows) == len(METHODS)


def test_times_of_one_stream_stand_beside_those_of_many(tmp_path: Path) -> None:
    runs = [
        timed("lmn", 10.0, device="GPU"),
        timed("maml", 50.0, device="GPU"),
        timed("lmn", 1000.0, size="speed"),
        timed("maml", 7000.0, size="speed"),
        timed("maml", 1.0, size="speed", dataset="geolife"),
        timed("static", 500.0, size="speed"),  # not run at the size of the paper
    ]
    table = speed(loaded(tmp_path, *runs))
    rows = {row[0]: row[2:] for row in rows_of(to_markdown(table))[2:]}
    assert rows == {"maml": ["50.0", "5", "7,000.0", "7"], "lmn": ["10.0", "1", "1,000.0", "1"]}
    assert table.note == "Many streams timed on GPU. One stream timed on cpu, 2 threads."


def test_runs_made_for_their_times_come_before_others(tmp_path: Path) -> None:
    runs = [
        timed("lmn", 10.0, device="a shared GPU"),
        timed("maml", 50.0, device="a shared GPU"),
        timed("lmn", 2.0, device="GPU", size="lockstep"),
        timed("maml", 16.0, device="GPU", size="lockstep"),
    ]
    table = speed(loaded(tmp_path, *runs))
    rows = {row[0]: row[2:] for row in rows_of(to_markdown(table))[2:]}
    assert rows == {"maml": ["16.0", "8"], "lmn": ["2.0", "1"]}
    assert table.note == "Many streams timed on GPU."
