"""Times as people write them, as seconds since 1970."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

__all__ = ["EXPECTED", "seconds", "shown"]

EXPECTED = "a time: seconds or milliseconds since 1970, or ISO 8601 such as 2014-04-07T10:51:09Z"

# A count of seconds stays below 1e11 until the year 5138. What is larger is read as milliseconds,
# microseconds or nanoseconds; in each of these units, the times after March 1973 are recognised.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def seconds(value: Any) -> float:
    """Read a time.

    Numbers count from 1970, in a unit told by their size; texts are numbers or ISO 8601, in UTC
    where they name no zone.

    Raises
    ------
    ValueError
        It is no time.

    Examples
    --------
    >>> seconds("1970-01-02"), seconds("86400"), seconds(1_700_000_000_123)
    (86400.0, 86400.0, 1700000000.123)
    """
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no time")
    for least, unit in _UNITS:
        if abs(value) >= least:
            return value / unit
    return float(value)


def shown(time: float) -> str:
    """A time for people; what cannot be a date is shown as the number it is.

    Examples
    --------
    >>> shown(86400.0), shown(17.0)
    ('1970-01-02 00:00:00', '17')
    """
    if not 86_400 <= time < 2.5e11:  # small numbers are counters, not dates
        return f"{time:g}"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
