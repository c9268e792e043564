"""Read columns of dates and times as Unix time, whole columns at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelmem_paper.datasets.delimited import Table

__all__ = ["dates_and_times", "iso_milliseconds", "twitter_seconds"]

Integers = npt.NDArray[np.int64]
Letters = npt.NDArray[np.uint8]

_MONTHS = b"JanFebMarAprMayJunJulAugSepOctNovDec"
DAY = 86_400


def iso_milliseconds(table: Table, column: int) -> Integers:
    r"""Read ``2014-04-07T10:51:09Z`` or ``2014-04-07T10:51:09.277Z`` as Unix milliseconds.

    Examples
    --------
    >>> rows = Table(b"1970-01-02T00:00:01.500Z\n", columns=1, path="x")
    >>> iso_milliseconds(rows, 0)
    array([86401500])
    """
    expected = "a time such as 2014-04-07T10:51:09.277Z"
    text = table.letters(column, 20, expected)
    fraction = table.widths(column) == 24
    good = (text[:, 10] == ord("T")) & (fraction | (table.widths(column) == 20))
    days, right_date = _date(text[:, :10])
    seconds, right_time = _clock(text[:, 11:19])
    table.require(good & right_date & right_time, column, expected)
    result = (days * DAY + seconds) * 1000
    if fraction.any():
        part = table.where(fraction)
        thousandths, right = _number(part.letters(column, 24, expected)[:, 20:23])
        part.require(right, column, expected)
        result[fraction] += thousandths
    return result


def twitter_seconds(table: Table, column: int) -> Integers:
    r"""Read ``Tue Apr 03 18:00:09 +0000 2012`` as Unix seconds.

    Examples
    --------
    >>> rows = Table(b"Tue Apr 03 18:00:09 +0000 2012\n", columns=1, path="x")
    >>> twitter_seconds(rows, 0)
    array([1333476009])
    """
    expected = "a time such as Tue Apr 03 18:00:09 +0000 2012"
    text = table.letters(column, 30, expected)
    names = np.frombuffer(_MONTHS, np.uint8).reshape(12, 3)
    match = (text[:, None, 4:7] == names).all(axis=2)
    year, right_year = _number(text[:, 26:30])
    day, right_day = _number(text[:, 8:10])
    seconds, right_time = _clock(text[:, 11:19])
    utc = (text[:, 20:25] == np.frombuffer(b"+0000", np.uint8)).all(axis=1)
    good = match.any(axis=1) & right_year & right_day & right_time & utc & (day >= 1) & (day <= 31)
    table.require(good, column, expected)
    return _days(year, match.argmax(axis=1) + 1, day) * DAY + seconds


def dates_and_times(table: Table, date: int, time: int) -> Integers:
    """Read a column of ``2008-10-23`` and one of ``02:53:04`` as Unix seconds."""
    days, right_date = _date(table.letters(date, 10, "a date such as 2008-10-23"))
    table.require(right_date, date, "a date such as 2008-10-23")
    seconds, right_time = _clock(table.letters(time, 8, "a time such as 02:53:04"))
    table.require(right_time, time, "a time such as 02:53:04")
    return days * DAY + seconds


def _number(text: Letters) -> tuple[Integers, npt.NDArray[np.bool_]]:
    digits = text.astype(np.int64) - ord("0")
    good: npt.NDArray[np.bool_] = np.all((digits >= 0) & (digits <= 9), axis=1)
    value = np.zeros(len(text), np.int64)
    for digit in digits.T:
        value = value * 10 + digit
    return value, good


def _date(text: Letters) -> tuple[Integers, npt.NDArray[np.bool_]]:
    year, right_year = _number(text[:, :4])
    month, right_month = _number(text[:, 5:7])
    day, right_day = _number(text[:, 8:10])
    good = right_year & right_month & right_day & (text[:, [4, 7]] == ord("-")).all(axis=1)
    good &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return _days(year, month, day), good


def _clock(text: Letters) -> tuple[Integers, npt.NDArray[np.bool_]]:
    hour, right_hour = _number(text[:, :2])
    minute, right_minute = _number(text[:, 3:5])
    second, right_second = _number(text[:, 6:8])
    good = right_hour & right_minute & right_second & (text[:, [2, 5]] == ord(":")).all(axis=1)
    good &= (hour < 24) & (minute < 60) & (second <= 60)
    return (hour * 60 + minute) * 60 + second, good


def _days(year: Integers, month: Integers, day: Integers) -> Integers:
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64) + day - 1
