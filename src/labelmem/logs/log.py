"""A log in memory: whole numbers for users and items, sorted by user and time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError
from labelmem.logs.grouping import offsets_of
from labelmem.logs.problems import Policy, Problems
from labelmem.logs.rows import Columns, read_rows
from labelmem.logs.times import EXPECTED, seconds

__all__ = ["Log", "read_log"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Log:
    """Events in the order of user, then time, then row; 28 bytes each."""

    path: Path
    user: Integers
    """(events,) numbers of users, in the order in which the file first names them."""
    item: Integers
    """(events,) numbers of items, likewise."""
    time: npt.NDArray[np.float64] | None
    """(events,) seconds since 1970; None without a time column."""
    row: Integers
    """(events,) where in the file each event stands."""
    users: Sequence[str]
    items: Sequence[str]
    problems: Problems

    def __len__(self) -> int:
        return len(self.user)

    @cached_property
    def offsets(self) -> Integers:
        """Where each user's events begin, by the user's number, and where the last one's end."""
        return offsets_of(self.user)


def read_log(path: Path, columns: Columns, policy: Policy = "stop", after: int = 0) -> Log:
    """Read a log, put it in order and settle what is wrong with it.

    Parameters
    ----------
    columns
        Which columns hold user, item and time. Without a time, rows are taken to be in order.
    policy
        What to do about rows that cannot be used, or are odd.
    after
        Rows up to this one are passed over.

    Raises
    ------
    DataError
        A column is missing, nothing is left, or there are rows that ``policy`` does not allow.
    """
    problems = Problems(path, policy)
    reader = _Reader(columns, problems)
    for row in read_rows(path, columns, problems):
        if row[0] > after:
            reader.take(*row)
    log = _in_order(path, reader, columns.time is not None, problems)
    problems.settle()
    if not len(log) and not after:
        why = "; ".join(problems.sentences()) or "it has no rows at all"
        raise DataError(f"{path} has no row that can be used; {why}")
    return log


class _Reader:
    """Numbers users and items as they come, so that no text is kept twice."""

    def __init__(self, columns: Columns, problems: Problems) -> None:
        self.problems, self.timed = problems, columns.time is not None
        self.users: dict[str, int] = {}
        self.items: dict[str, int] = {}
        self.user, self.item, self.row = array("q"), array("q"), array("q")
        self.time = array("d")
        self._types: tuple[type, type] | None = None

    def take(self, row: int, user: Any, item: Any, time: Any) -> None:
        """One row of the file."""
        who, what = _name(user), _name(item)
        if not who or not what:
            self.problems.add("item" if who else "user", row, _shown(user, item, time))
            return
        if self.timed:
            try:
                self.time.append(seconds(time))
            except (ValueError, TypeError, OverflowError):
                self.problems.add("time", row, f"{time}, expected {EXPECTED}")
                return
        types = (type(user), type(item))
        if self._types is None:
            self._types = types
        elif types != self._types:
            self.problems.add("types", row, _shown(user, item, time))
        self.user.append(self.users.setdefault(who, len(self.users)))
        self.item.append(self.items.setdefault(what, len(self.items)))
        self.row.append(row)


def _name(value: Any) -> str:
    """A user or an item as text; empty for what cannot be one."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return ""
    return str(value)


def _shown(*fields: Any) -> str:
    return ", ".join("" if field is None else str(field) for field in fields)


def _in_order(path: Path, reader: _Reader, timed: bool, problems: Problems) -> Log:
    user, item, row = (np.array(x, np.int64) for x in (reader.user, reader.item, reader.row))
    time = np.array(reader.time, np.float64) if timed else None
    order = np.argsort(user, kind="stable")  # each user's rows as they stand in the file
    if time is not None:
        same = user[order][1:] == user[order][:-1]
        back = order[1:][same & (time[order][1:] < time[order][:-1])]
        if len(back):
            problems.add("order", int(row[back].min()), rows=len(back))
        again = _repeats(user, item, time, row)
        if len(again):
            problems.add("duplicate", int(row[again].min()), rows=len(again))
        order = np.lexsort((row, time, user))
        order = order[~np.isin(order, again)]
        time = time[order]
    users, items = [*reader.users], [*reader.items]
    return Log(path, user[order], item[order], time, row[order], users, items, problems)


def _repeats(
    user: Integers, item: Integers, time: npt.NDArray[np.float64], row: Integers
) -> Integers:
    """Events that are the same in everything as an earlier one."""
    order = np.lexsort((row, item, time, user))
    again = np.ones(max(len(order) - 1, 0), np.bool_)
    for values in (user, item, time):
        again &= values[order][1:] == values[order][:-1]
    return np.asarray(order[1:][again], np.int64)
