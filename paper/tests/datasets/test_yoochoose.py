from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from labelmem_paper.datasets import YoochooseRecipe, load

from labelmem.errors import DataError

Write = Callable[[str, bytes], Path]
ALL = YoochooseRecipe(min_length=1)

CLICKS = (
    "3,2014-04-07T10:54:09.868Z,214536500,0\n"
    "3,2014-04-07T10:54:46.998Z,214536506,0\n"
    "3,2014-04-07T10:54:46.999Z,214536506,S\n"
    "1,2014-04-07T10:58:00.306Z,214536502,0\n"
    "1,2014-04-07T10:57:00.306Z,214536500,0\n"
    "2,2014-04-07T10:50:00.000Z,214662742,0\n"
)


def spelled(data: object) -> list[list[str]]:
    return [[data.names[y] for y in sequence] for sequence in data]  # type: ignore[attr-defined]


def test_sessions_stand_in_the_order_of_their_first_click(write: Write, tmp_path: Path) -> None:
    write("yoochoose-clicks.dat", CLICKS.encode())
    data = load("yoochoose", ALL, root=tmp_path)
    assert data.users.tolist() == [2, 3, 1]
    assert spelled(data) == [
        ["214662742"],
        ["214536500", "214536506"],
        ["214536500", "214536502"],
    ]
    assert data.split.test.tolist() == [2]
    assert data.source.form == "raw"


def test_recipe_is_applied(write: Write, tmp_path: Path) -> None:
    write("yoochoose-clicks.dat", CLICKS.encode())
    data = load("yoochoose", {"merge_repeats": False, "min_length": 3}, root=tmp_path)
    assert spelled(data) == [["214536500", "214536506", "214536506"]]
    rare = load("yoochoose", {"min_item_count": 2, "min_length": 1}, root=tmp_path)
    assert rare.names == ("214536500",)


def test_compact_equals_raw(write: Write, tmp_path: Path) -> None:
    raw, packed = tmp_path / "raw", tmp_path / "packed"
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, 40)
    items = rng.integers(1, 12, lengths.sum())
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lines, second = [], 0
    for session in range(40):
        for item in items[offsets[session] : offsets[session + 1]]:
            second += 1
            stamp = (
                f"2014-04-{1 + second // 3600:02}T00:{second // 60 % 60:02}:{second % 60:02}.000Z"
            )
            lines.append(f"{session},{stamp},{item},0\n")
    write("raw/yoochoose-clicks.dat", "".join(lines).encode())
    packed.mkdir()
    np.savez(
        packed / "yoochoose_apr2014_17days.npz",
        items=items.astype(np.uint16),
        offsets=offsets.astype(np.int32),
        day=np.zeros(40, np.uint8),
        source_session=np.arange(40, dtype=np.int32),
    )
    one, two = (load("yoochoose", {"min_length": 3}, root=root) for root in (raw, packed))
    assert spelled(one) == spelled(two)
    assert (one.users == two.users).all()
    assert two.source.subset


def test_malformed_line(write: Write, tmp_path: Path) -> None:
    write("yoochoose-clicks.dat", CLICKS.encode() + b"4,2014-04-07T10:50:00.000Z,item,0\n")
    with pytest.raises(DataError, match=r"yoochoose-clicks\.dat, line 7: found 'item'"):
        load("yoochoose", ALL, root=tmp_path)


def test_line_numbers_go_on_across_blocks(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelmem_paper.datasets import tables
    from labelmem_paper.datasets.opening import read_blocks

    monkeypatch.setattr(tables, "read_blocks", lambda path, member: read_blocks(path, member, 100))
    write("yoochoose-clicks.dat", CLICKS.encode() + b"4,2014-04-07T10:50:00.000Z,1\n")
    with pytest.raises(DataError, match=r"line 7: .* expected 4 fields"):
        load("yoochoose", ALL, root=tmp_path)


def test_nothing_left(write: Write, tmp_path: Path) -> None:
    write("yoochoose-clicks.dat", CLICKS.encode())
    with pytest.raises(DataError, match="nothing is left of the 6 clicks"):
        load("yoochoose", root=tmp_path)


def test_compact_with_offsets_that_do_not_fit(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "yoochoose_apr2014_17days.npz",
        items=np.ones(5, np.uint16),
        offsets=np.array([0, 9]),
        source_session=np.array([1]),
    )
    with pytest.raises(DataError, match="offsets do not fit"):
        load("yoochoose", root=tmp_path)


def test_compact_without_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "yoochoose_apr2014_17days.npz", items=np.ones(5, np.uint16))
    with pytest.raises(DataError, match="cannot be unpacked"):
        load("yoochoose", root=tmp_path)
