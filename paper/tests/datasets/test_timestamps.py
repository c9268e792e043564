from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelmem_paper.datasets.delimited import Table
from labelmem_paper.datasets.timestamps import dates_and_times, iso_milliseconds, twitter_seconds

from labelmem.errors import DataError

moments = st.lists(
    st.datetimes(datetime(1970, 1, 1), datetime(2099, 12, 31)).map(lambda d: d.replace(tzinfo=UTC)),
    min_size=1,
)


def table(lines: list[str], columns: int = 1) -> Table:
    return Table("".join(line + "\n" for line in lines).encode(), columns=columns, path="x")


@given(moments, st.booleans())
def test_iso(times: list[datetime], fraction: bool) -> None:
    form = "%Y-%m-%dT%H:%M:%S"
    texts = [
        t.strftime(form) + (f".{t.microsecond // 1000:03}Z" if fraction else "Z") for t in times
    ]
    whole = [int(t.replace(microsecond=0).timestamp()) * 1000 for t in times]
    expected = [w + t.microsecond // 1000 * fraction for w, t in zip(whole, times, strict=True)]
    assert iso_milliseconds(table(texts), 0).tolist() == expected


@given(moments)
def test_twitter(times: list[datetime]) -> None:
    texts = [t.strftime("%a %b %d %H:%M:%S +0000 %Y") for t in times]
    expected = [int(t.replace(microsecond=0).timestamp()) for t in times]
    assert twitter_seconds(table(texts), 0).tolist() == expected


@given(moments)
def test_two_columns(times: list[datetime]) -> None:
    rows = table([t.strftime("%Y-%m-%d\t%H:%M:%S") for t in times], columns=2)
    expected = [int(t.replace(microsecond=0).timestamp()) for t in times]
    assert dates_and_times(rows, 0, 1).tolist() == expected


def test_with_and_without_fraction_in_one_file() -> None:
    rows = table(["1970-01-01T00:00:01Z", "1970-01-01T00:00:01.250Z"])
    assert iso_milliseconds(rows, 0).tolist() == [1000, 1250]


@pytest.mark.parametrize(
    "text",
    ["", "2014-04-07", "2014-13-07T10:51:09Z", "2014-04-00T10:51:09Z", "2014-04-07T25:51:09Z",
     "2014-04-07 10:51:09Z", "2014/04/07T10:51:09Z", "2014-04-07T10:51:09.27xZ",
     "2014-04-07T10:51:09.2Z", "2o14-04-07T10:51:09Z"],
)  # fmt: skip
def test_bad_iso(text: str) -> None:
    with pytest.raises(DataError, match=r"x, line 2: .* expected a time such as"):
        iso_milliseconds(table(["2014-04-07T10:51:09Z", text]), 0)


@pytest.mark.parametrize(
    "text",
    ["Tue Apr 03 18:00:09 +0900 2012", "Tue Axr 03 18:00:09 +0000 2012", "Tue Apr 03 18:00:09"],
)
def test_bad_twitter(text: str) -> None:
    with pytest.raises(DataError, match="x, line 1: "):
        twitter_seconds(table([text]), 0)
