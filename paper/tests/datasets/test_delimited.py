from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelmem_paper.datasets.delimited import Table

from labelmem.errors import DataError

words = st.text("abcxyz0189.", max_size=7)
rows = st.lists(st.tuples(st.integers(0, 10**17), words, st.floats(-1e6, 1e6)), min_size=1)


@given(rows, st.sampled_from(["\n", "\r\n"]))
def test_columns_equal_a_plain_split(data: list[tuple[int, str, float]], end: str) -> None:
    block = "".join(f"{a}\t{b}\t{c!r}{end}" for a, b, c in data).encode()
    table = Table(block, columns=3, path="x")
    assert len(table) == len(data)
    assert table.integers(0).tolist() == [a for a, _, _ in data]
    assert table.strings(1).tolist() == [b.encode() for _, b, _ in data]
    assert table.floats(2).tolist() == [c for _, _, c in data]
    assert table.widths(1).tolist() == [len(b) for _, b, _ in data]


def test_chosen_rows_keep_their_line_numbers() -> None:
    table = Table(b"1,a\n,b\n3x,c\n", columns=2, path="f.csv", delimiter=",", first_line=10)
    part = table.where(table.widths(0) > 0)
    with pytest.raises(DataError, match=r"f\.csv, line 12: found '3x', expected a whole number"):
        part.integers(0)


@pytest.mark.parametrize(
    ("block", "line"),
    [(b"1\t2\n3\n4\t5\n", 2), (b"1\t2\t3\n4\t5\n", 1), (b"1\t2\n\n", 2), (b"1\t2\n3\t4\t5\n", 2)],
)
def test_wrong_number_of_fields_names_the_line(block: bytes, line: int) -> None:
    with pytest.raises(DataError, match=rf"few\.tsv, line {line}: .* expected 2 fields"):
        Table(block, columns=2, path="few.tsv")


@pytest.mark.parametrize("value", ["", "-1", "1.5", "1 ", "9" * 19, "/", ":"])
def test_not_a_whole_number(value: str) -> None:
    with pytest.raises(DataError, match="line 2"):
        Table(f"7\n{value}\n".encode(), columns=1, path="x").integers(0)


@pytest.mark.parametrize("value", ["", "north", "1,5", "nan", "inf"])
def test_not_a_number(value: str) -> None:
    with pytest.raises(DataError, match="line 2"):
        Table(f"7.5\n{value}\n".encode(), columns=1, path="x").floats(0)


def test_nothing_at_all() -> None:
    table = Table(b"", columns=3, path="x")
    assert len(table) == 0
    assert table.integers(0).dtype == np.int64
    assert table.strings(1).tolist() == []
