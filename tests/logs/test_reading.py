from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelmem.errors import DataError
from labelmem.logs.log import Log, read_log
from labelmem.logs.rows import Columns, format_of
from labelmem.logs.summary import summary_of
from labelmem.logs.times import seconds

COLUMNS = Columns("user", "item", "time")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def as_events(log: Log) -> list[tuple[Any, ...]]:
    """The events as they were, in the log's order."""
    times = [None] * len(log) if log.time is None else log.time.tolist()
    names = zip(log.user, log.item, times, strict=True)
    return [(log.users[u], log.items[i], t) for u, i, t in names]


EVENTS = [("ann", "café", 5.0), ("bob", "a,b", 1.0), ("ann", "gym", 2.0)]
IN_ORDER = [("ann", "gym", 2.0), ("ann", "café", 5.0), ("bob", "a,b", 1.0)]


@pytest.mark.parametrize("kind", ["csv", "tsv", "semicolon", "bom", "gz", "jsonl", "parquet"])
def test_every_format_gives_the_same_log(kind: str, tmp_path: Path) -> None:
    mark = {"tsv": "\t", "semicolon": ";"}.get(kind, ",")
    rows = [mark.join(["x", "time", "user", "item"])]
    rows += [mark.join(["0", str(t), user, f'"{item}"']) for user, item, t in EVENTS]
    text = "\r\n".join(rows)  # the last line has no end
    path = tmp_path / f"log.{'csv' if kind in ('semicolon', 'bom') else kind}"
    if kind == "jsonl":
        objects = [{"user": u, "item": i, "time": t} for u, i, t in EVENTS]
        write(path, "\n".join(json.dumps(row) for row in objects))
    elif kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = dict(zip(("user", "item", "time"), zip(*EVENTS, strict=True), strict=True))
        parquet.write_table(arrow.table({k: list(v) for k, v in columns.items()}), path)
    elif kind == "gz":
        path = tmp_path / "log.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_bytes((b"\xef\xbb\xbf" if kind == "bom" else b"") + text.encode())
    assert as_events(read_log(path, COLUMNS)) == IN_ORDER


def test_columns_may_have_numbers_for_names(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", "x\tann\tgym\nx\tbob\n")
    log = read_log(path, Columns("2", "3", header=False), "skip")
    assert as_events(log) == [("ann", "gym", None)] and log.row.tolist() == [1]
    assert log.problems.counts == {"fields": 1}
    with pytest.raises(DataError, match="has no column 4; its columns are 1, 2, 3"):
        read_log(path, Columns("2", "4", header=False))


@pytest.mark.parametrize(("start", "found"), [('{"a": 1}', "jsonl"), ("a,b", "csv")])
def test_a_format_is_told_by_content(start: str, found: str, tmp_path: Path) -> None:
    assert format_of(write(tmp_path / "log", start)) == found


BAD = """user,item,time
ann,gym,1
bob,gym
,gym,2
ann,,3
ann,gym,yesterday
ann,gym,4
"""


def test_bad_rows_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_log(write(tmp_path / "bad.csv", BAD), COLUMNS)
    told = str(caught.value)
    for part in ("row 3: 'bob,gym'", "row 4", "row 5", "row 6: 'yesterday", "--skip-bad"):
        assert part in told


def test_bad_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "bad.csv", BAD), COLUMNS, "skip")
    assert as_events(log) == [("ann", "gym", 1.0), ("ann", "gym", 4.0)]
    assert log.problems.counts == {"fields": 1, "user": 1, "item": 1, "time": 1}
    assert log.row.tolist() == [2, 7] and log.problems.skipped == 4


ODD = """user,item,time
ann,gym,5
ann,bar,3
ann,gym,5
bob,gym,5
"""


def test_odd_rows_are_put_right_and_counted(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "odd.csv", ODD), COLUMNS)
    assert as_events(log) == [("ann", "bar", 3.0), ("ann", "gym", 5.0), ("bob", "gym", 5.0)]
    assert log.problems.counts == {"order": 1, "duplicate": 1}


def test_strict_stops_at_odd_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"repeats an event.*row 4.*row 3.*leave --strict out"):
        read_log(write(tmp_path / "odd.csv", ODD), COLUMNS, "strict")


def test_without_a_time_rows_are_in_order(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "odd.csv", ODD), Columns("user", "item"))
    assert [log.items[i] for i in log.item] == ["gym", "bar", "gym", "gym"]


def test_types_may_be_mixed_in_json(tmp_path: Path) -> None:
    rows = [{"user": 42, "item": "a"}, {"user": "42", "item": "b"}, {"user": True, "item": "c"}]
    path = write(tmp_path / "log.jsonl", "\n".join(map(json.dumps, rows)) + "\nnot json\n[1]\n")
    log = read_log(path, Columns("user", "item"), "skip")
    assert log.users == ["42"] and len(log) == 2
    assert log.problems.counts == {"types": 1, "user": 1, "json": 2}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("log.csv", "a,b\n1,2\n", "has no column user, item, time; its columns are a, b"),
        ("log.jsonl", '{"user": 1, "item": 2}\n', "has no column time"),
        ("log.csv", "user,item,time\n", "no row that can be used; it has no rows at all"),
        ("log.csv", "", "log.csv is empty"),
        ("log.csv", "user,user,item,time\n", "has the column user more than once"),
        ("log.json", '[{"user": 1}]\n', "is one JSON array; expected one JSON object in each"),
        ("log.jsonl", "", "it has no rows at all"),
        ("log.parquet", "nonsense", "cannot be read as Parquet"),
    ],
)
def test_files_that_cannot_be_read_are_explained(
    name: str, text: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=told):
        read_log(write(tmp_path / name, text), COLUMNS)


def test_a_missing_file_and_a_folder_are_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read_log(tmp_path / "no.csv", COLUMNS)
    with pytest.raises(DataError, match="is a folder"):
        read_log(tmp_path, COLUMNS)


def test_text_that_is_not_utf8_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("user,item,time\nann,café,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_log(path, COLUMNS)


@pytest.mark.parametrize("value", ["", "soon", "nan", True, None, float("inf")])
def test_what_is_no_time(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        seconds(value)


def test_one_time_in_every_form() -> None:
    forms = [1_600_000_000, "1600000000", 1_600_000_000_000, "2020-09-13T12:26:40Z"]
    forms += ["2020-09-13 14:26:40+02:00", "2020-09-13T12:26:40", 1_600_000_000_000_000]
    assert [seconds(form) for form in forms] == [1.6e9] * len(forms)


def test_a_summary_counts_as_a_loop_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [(f"u{rng.integers(5)}", f"i{rng.integers(9)}", t) for t in range(60)] + [
        ("lone", "x", 7)
    ]
    text = "user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows)
    found = summary_of(read_log(write(tmp_path / "log.csv", text), COLUMNS))
    had: set[tuple[str, str]] = set()
    repeats = 0
    for user, item, _ in rows:
        repeats += (user, item) in had
        had.add((user, item))
    owners = {item: {u for u, i, _ in rows if i == item} for _, item, _ in rows}
    assert (found.events, found.users, found.items) == (61, 6, len(owners))
    assert found.repeats == pytest.approx(repeats / 61)
    assert found.lone_items == sum(len(users) == 1 for users in owners.values())
    assert found.single_users == 1 and found.most_events >= found.median_events
