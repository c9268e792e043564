"""One table, shown as Markdown, HTML or on the terminal, with the best figures in bold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias

from labelmem.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["CLOSE", "NOTHING", "Column", "Estimate", "Shown", "Table", "Value"]
__all__ += ["to_html", "to_markdown", "to_rich"]

NOTHING = "–"
"""What stands for a figure that does not exist."""
CLOSE = "†"
"""The mark of a figure that the best one cannot be told from."""


@dataclass(frozen=True)
class Estimate:
    """A figure and, where they are known, the bounds of its interval."""

    value: float
    low: float = math.nan
    high: float = math.nan
    beside: str = ""
    """What is written behind it, e.g. another metric."""

    def close_to(self, other: Estimate) -> bool:
        """Whether the two cannot be told apart: their intervals are known and share a point.

        Examples
        --------
        >>> Estimate(2, 1, 3).close_to(Estimate(4, 3, 5)), Estimate(2).close_to(Estimate(2, 1, 3))
        (True, False)
        """
        return self.low <= other.high and other.low <= self.high


Value: TypeAlias = str | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """What a column is called and how its figures are written."""

    key: str
    """Where a row keeps the figure."""
    title: str
    """The heading."""
    format: str = ""
    """A format specification such as ``.3f`` or ``.1%``; empty for text."""
    best: Literal["high", "low"] | None = None
    """Whether the highest or the lowest figure is best; None marks none."""
    close: bool = False
    """Whether figures get a mark that cannot be told from the best."""
    short: str = ""
    """The heading on a terminal, where room is scarce; empty takes the title."""


@dataclass(frozen=True)
class Shown:
    """One cell as it is read."""

    text: str
    tail: str = ""
    """What follows the figure on its line."""
    interval: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of figures under typed columns; the first column names the rows.

    Parameters
    ----------
    columns
        What to show, in order.
    rows
        One mapping for each row, from the columns' keys to text, numbers or estimates.
    caption
        What the table is about.
    note
        What must be known to read it, e.g. how it was measured; may have several lines.

    Examples
    --------
    >>> table = Table(
    ...     [Column("method", "Method"), Column("mrr", "MRR", ".2f", best="high")],
    ...     [{"method": "none", "mrr": 0.25}, {"method": "ours", "mrr": Estimate(0.5, 0.4, 0.6)}],
    ... )
    >>> print(to_markdown(table))
    | Method | MRR |
    |---|---:|
    | none | 0.25 |
    | ours | **0.50** (0.40 to 0.60) |
    """

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Value]]
    caption: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            for column in self.columns:
                if column.key not in row:
                    raise ConfigError(
                        f"a row has {sorted(row)} but no {column.key!r}, "
                        f"which the column {column.title!r} shows"
                    )

    def shown(self, intervals: bool = True) -> list[list[Shown]]:
        """The cells as they are read, row by row, the best of each column marked."""
        columns = [self._column(column, intervals) for column in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def _column(self, column: Column, intervals: bool) -> list[Shown]:
        values = [row[column.key] for row in self.rows]
        cells = [_shown(value, column.format, intervals) for value in values]
        best = _best([_number(value) for value in values], column.best)
        # What reads the same is equally good: nobody can see which one won.
        winning = {cells[i].text for i in best}
        cells = [replace(cell, best=cell.text in winning) for cell in cells]
        top = values[best[0]] if column.close and best else None
        for i, (cell, value) in enumerate(zip(cells, values, strict=True)):
            if cell.best or not isinstance(value, Estimate) or not isinstance(top, Estimate):
                continue
            if value.close_to(top):
                cells[i] = replace(cell, tail=CLOSE + cell.tail)
        return cells


def to_markdown(table: Table, intervals: bool = True) -> str:
    """The table in GitHub's Markdown, without caption and note."""
    rows = [[_cell_md(column.title) for column in table.columns]]
    rows += [[_shown_md(cell) for cell in row] for row in table.shown(intervals)]
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    rule = "|".join("---:" if column.format else "---" for column in table.columns)
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def to_html(table: Table, intervals: bool = True) -> str:
    """The table as a figure that scrolls inside its own box where it is too wide.

    Examples
    --------
    >>> "<td" in to_html(Table([Column("a", "A"), Column("b", "B")], [{"a": "x", "b": "y"}]))
    True
    """
    head = "".join(
        f'<th scope="col"{_class(column)}>{escape(column.title)}</th>' for column in table.columns
    )
    body = "\n".join(_row_html(table.columns, row) for row in table.shown(intervals))
    label = escape(table.caption or "Table", quote=True)
    caption = f"<strong>{escape(table.caption)}</strong> " if table.caption else ""
    note = escape(table.note).replace("\n", "<br>\n")
    below = f"<figcaption>{caption}{note}</figcaption>\n" if caption or note else ""
    return (
        f'<figure class="table">\n<div class="scroll" role="region" tabindex="0" '
        f'aria-label="{label}">\n<table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>\n{below}</figure>"
    )


def to_rich(table: Table, intervals: bool = False) -> RichTable:
    """The table for a terminal."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    shown.title, shown.caption = table.caption or None, table.note or None
    for i, column in enumerate(table.columns):
        justify: Literal["left", "right"] = "right" if column.format else "left"
        shown.add_column(column.short or column.title, justify=justify, no_wrap=i == 0)
    for row in table.shown(intervals):
        cells = []
        for cell in row:
            text = Text(cell.text, style="bold green" if cell.best else "")
            text.append(cell.tail)
            cells.append(text.append(f" {cell.interval}", style="dim") if cell.interval else text)
        shown.add_row(*cells)
    return shown


def _shown(value: Value, spec: str, intervals: bool) -> Shown:
    if isinstance(value, str):
        return Shown(value)
    number = _number(value)
    if math.isnan(number):
        return Shown(NOTHING)
    interval = tail = ""
    if isinstance(value, Estimate):
        tail = f" {value.beside}" if value.beside else ""
        if intervals and not math.isnan(value.low):
            interval = f"{value.low:{spec}} to {value.high:{spec}}"
    return Shown(f"{number:{spec}}", tail, interval)


def _number(value: Value) -> float:
    if isinstance(value, Estimate):
        return value.value
    return math.nan if value is None or isinstance(value, str) else float(value)


def _best(numbers: Sequence[float], order: str | None) -> list[int]:
    """Positions of the best number; none where there is nothing to be better than."""
    real = [number for number in numbers if not math.isnan(number)]
    if order is None or len(real) < 2:
        return []
    top = max(real) if order == "high" else min(real)
    return [i for i, number in enumerate(numbers) if number == top]


def _cell_md(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _shown_md(cell: Shown) -> str:
    text = _cell_md(cell.text)
    text = (f"**{text}**" if cell.best else text) + cell.tail.replace("|", "\\|")
    return f"{text} ({cell.interval})" if cell.interval else text


def _class(column: Column) -> str:
    return ' class="number"' if column.format else ""


def _row_html(columns: Sequence[Column], row: Sequence[Shown]) -> str:
    cells = []
    for i, (column, cell) in enumerate(zip(columns, row, strict=True)):
        text = escape(cell.text)
        text = (f"<strong>{text}</strong>" if cell.best else text) + escape(cell.tail)
        if cell.interval:
            text += f"<small>{escape(cell.interval)}</small>"
        kind, scope = ("th", ' scope="row"') if i == 0 else ("td", "")
        cells.append(f"<{kind}{scope}{_class(column)}>{text}</{kind}>")
    return f"<tr>{''.join(cells)}</tr>"
