"""The rows of a CSV, JSON Lines or Parquet file: user, item and time, as they stand there."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from labelmem.errors import DataError, MissingExtraError
from labelmem.logs.opening import opened
from labelmem.logs.problems import Problems

__all__ = ["Columns", "Format", "format_of", "parquet_file", "read_rows", "require_columns"]

Format = Literal["csv", "jsonl", "parquet"]
Row = tuple[int, Any, Any, Any]
"""The row's number as an editor counts lines, its user, item and time (None without a column)."""

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_PACKED = (".gz", ".xz")
_DELIMITERS = ",\t;|"


@dataclass(frozen=True)
class Columns:
    """Which columns hold what."""

    user: str
    item: str
    time: str | None = None
    header: bool = True
    """Whether the first row of a CSV file names the columns; if not, they are 1, 2 and so on."""

    def names(self) -> list[str]:
        """Those that are asked for."""
        return [name for name in (self.user, self.item, self.time) if name is not None]


def format_of(path: Path) -> Format:
    """The format of a file, by its name or by its first bytes.

    Examples
    --------
    >>> format_of(Path("events.csv.gz")), format_of(Path("events.parquet"))
    ('csv', 'parquet')
    """
    suffixes = [suffix for suffix in path.suffixes if suffix not in _PACKED]
    if suffixes and suffixes[-1].lower() in _SUFFIXES:
        return _SUFFIXES[suffixes[-1].lower()]
    with opened(path) as stream:
        start = stream.read(64).lstrip()
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK"):
        raise DataError(f"{path} is a zip archive; unpack it, or pack it as .gz or .xz")
    if start.startswith(b"["):
        raise DataError(f"{path} is one JSON array; expected one JSON object in each line")
    return "jsonl" if start.startswith(b"{") else "csv"


def read_rows(path: Path, columns: Columns, problems: Problems) -> Iterator[Row]:
    """Yield the rows that can be read; the others go to ``problems``."""
    readers = {"csv": _csv_rows, "jsonl": _json_rows, "parquet": _parquet_rows}
    return readers[format_of(path)](path, columns, problems)


def _csv_rows(path: Path, columns: Columns, problems: Problems) -> Iterator[Row]:
    with opened(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        try:
            yield from _csv_fields(path, text, columns, problems)
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from error
        finally:
            text.detach()


def _csv_fields(
    path: Path, text: io.TextIOWrapper, columns: Columns, problems: Problems
) -> Iterator[Row]:
    first = text.readline()
    if not first:
        raise DataError(f"{path} is empty")
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
    names = next(csv.reader([first], delimiter=delimiter), [])
    if columns.header:
        names = [name.strip() for name in next(reader, [])]
    else:
        names = [str(place) for place in range(1, len(names) + 1)]
    user, item, time = _places(path, names, columns)
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # a field without end, or a zero byte
            problems.add("fields", reader.line_num, str(error))
            continue
        if len(fields) == len(names):
            yield reader.line_num, fields[user], fields[item], time and fields[time - 1]
        elif fields:  # an empty line is no row
            problems.add("fields", reader.line_num, delimiter.join(fields))


def _places(path: Path, header: Sequence[str], columns: Columns) -> tuple[int, int, int]:
    """Positions of user and item from 0, of the time from 1, where 0 is none."""
    require_columns(path, header, columns.names())
    time = 0 if columns.time is None else header.index(columns.time) + 1
    return header.index(columns.user), header.index(columns.item), time


def require_columns(
    path: Path, found: Sequence[str], wanted: Sequence[str], noun: str = "column"
) -> None:
    """Refuse a file that lacks a wanted column, or has it twice."""
    missing = [name for name in wanted if name not in found]
    if missing:
        there = ", ".join(found[:20]) or "none"
        raise DataError(f"{path} has no {noun} {', '.join(missing)}; its {noun}s are {there}")
    twice = [name for name in wanted if found.count(name) > 1]
    if twice:
        raise DataError(f"{path} has the {noun} {twice[0]} more than once; which one is meant?")


def _json_rows(path: Path, columns: Columns, problems: Problems) -> Iterator[Row]:
    seen: set[str] = set()
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                problems.add("json", number, line.decode("utf-8", "replace").strip())
                continue
            if len(seen) < 20:
                seen.update(row)
            time = None if columns.time is None else row.get(columns.time)
            yield number, row.get(columns.user), row.get(columns.item), time
    if seen:  # a column that no row has is a mistake in its name, not in the rows
        require_columns(path, sorted(seen), columns.names())


def parquet_file(path: Path) -> Any:
    """Open a Parquet file; its reader is an extra."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtraError(
            f"reading {path} needs pyarrow: pip install 'labelmem[logs]'"
        ) from error
    if not path.exists():
        raise DataError(f"there is no file {path}; check the path")
    try:
        return parquet.ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error


def _parquet_rows(path: Path, columns: Columns, problems: Problems) -> Iterator[Row]:
    file = parquet_file(path)
    require_columns(path, file.schema_arrow.names, columns.names())
    number = 0
    for batch in file.iter_batches(batch_size=65_536, columns=columns.names()):
        parts = [batch.column(name).to_pylist() for name in columns.names()]
        if columns.time is None:
            parts.append([None] * len(batch))
        for user, item, time in zip(*parts, strict=True):
            number += 1
            yield number, user, item, time
