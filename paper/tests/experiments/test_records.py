from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from labelmem_paper.experiments.records import Records, claimed, digest

from labelmem.errors import DataError


def run(seed: int = 0, **config: object) -> dict[str, object]:
    return {
        "table": "t",
        "dataset": "d",
        "method": "m",
        "seed": seed,
        "size": "smoke",
        "config": config,
    }


def test_what_is_appended_is_found_by_all_of_its_identity(tmp_path: Path) -> None:
    records = Records(tmp_path / "t.jsonl")
    assert records.find(run()) is None
    records.append(run(1, lr=0.1) | {"metrics": {"mrr": 0.5}})
    assert records.find(run(1, lr=0.1))["metrics"] == {"mrr": 0.5}  # type: ignore[index]
    assert records.find(run(2, lr=0.1)) is None
    assert records.find(run(1, lr=0.2)) is None


def test_the_same_run_is_recorded_once(tmp_path: Path) -> None:
    records = Records(tmp_path / "t.jsonl")
    for value in (1, 2):
        records.append(run() | {"value": value})
    assert [record["value"] for record in records] == [1]


def test_a_line_cut_short_is_passed_over_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    records = Records(path)
    records.append(run(0))
    with path.open("a") as file:
        file.write(json.dumps(run(1))[:40])
    assert [record["seed"] for record in records] == [0]
    records.append(run(2))
    assert [record["seed"] for record in records] == [0, 2]
    assert path.read_text().count("\n") == 2


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("{}x\n")
    with pytest.raises(DataError, match=r"t\.jsonl, line 1"):
        list(Records(path))


def _append(path: Path, first: int) -> None:
    for seed in range(first, first + 20):
        Records(path).append(run(seed) | {"padding": "x" * 5000})


def test_processes_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append, args=(path, 10 * i)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert sorted(record["seed"] for record in Records(path)) == list(range(40))


def test_only_one_can_claim(tmp_path: Path) -> None:
    with claimed(tmp_path / "lock") as first, claimed(tmp_path / "lock") as second:
        assert (first, second) == (True, False)
    with claimed(tmp_path / "lock") as again:
        assert again


def test_digests_tell_values_apart() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
