from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from labelmem_paper.datasets import load

from labelmem.errors import DataError, MissingDataError

Write = Callable[[str, bytes], Path]

TRAIN = 'text,category\r\nWhere, please?,card\r\n"Two\nlines",top_up\r\n' + "x,card\r\n" * 8
TEST = "text,category\r\ncaf\u00e9,top_up\r\n"


@pytest.mark.parametrize("compact", [False, True])
def test_reading(write: Write, tmp_path: Path, compact: bool) -> None:
    train = TRAIN.replace("Where, please?", '"Where, please?"')
    for part, text in (("train", train), ("test", TEST)):
        if compact:
            write(f"banking77.{part}.csv.xz", lzma.compress(text.encode()))
        else:
            write(f"banking77/{part}.csv", text.encode())
    data = load("banking77", root=tmp_path)
    assert data.texts[:2] == ("Where, please?", "Two\nlines")
    assert data.names == ("card", "top_up")
    assert data.categories.tolist() == [0, 1] + [0] * 8 + [1]
    assert data.part("test")[0] == ["café"]
    assert (len(data.split.train), len(data.split.valid)) == (9, 1)
    assert len(data) == 11


def test_common_file_names_count_only_in_their_own_folder(write: Write, tmp_path: Path) -> None:
    write("train.csv", TRAIN.encode())
    write("test.csv", TEST.encode())
    with pytest.raises(MissingDataError):
        load("banking77", root=tmp_path)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("a,b,c\r\n", "line 3: found 'a,b,c'"),
        ("alone\r\n", "line 3: found 'alone'"),
        ("a,\r\n", "line 3"),
        ('"open,card\r\n', "line 3: .* quoted fields"),
    ],
)
def test_malformed(write: Write, tmp_path: Path, bad: str, what: str) -> None:
    write("banking77/train.csv", b"text,category\r\nx,card\r\n" + bad.encode())
    write("banking77/test.csv", TEST.encode())
    with pytest.raises(DataError, match=rf"train\.csv, {what}"):
        load("banking77", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"text,category\r\n", "holds no text"), (b"q,a\r\n", "line 1"), (b"\xff", "not UTF-8")],
)
def test_other_faults(write: Write, tmp_path: Path, content: bytes, what: str) -> None:
    write("banking77/train.csv", content)
    write("banking77/test.csv", TEST.encode())
    with pytest.raises(DataError, match=what):
        load("banking77", root=tmp_path)
