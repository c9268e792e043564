from __future__ import annotations

import io
import math
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from labelmem.errors import ConfigError
from labelmem.render.tables import Column, Estimate, Table, to_html, to_markdown, to_rich

COLUMNS = (
    Column("name", "Name"),
    Column("up", "Up", ".1%", best="high"),
    Column("down", "Down", ".2f", best="low"),
    Column("free", "Free", ".0f"),
)
ROWS = (
    {"name": "a|b", "up": 0.5, "down": Estimate(1.0, 0.9, 1.1), "free": 7},
    {"name": "<c>", "up": Estimate(0.75, 0.7, 0.8), "down": 0.5, "free": None},
    {"name": "d", "up": math.nan, "down": 0.5004, "free": 3},
)
TABLE = Table(COLUMNS, ROWS, caption="A & B", note="As measured.")


class Cells(HTMLParser):
    """The words of every cell, row by row, with what was in strong."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.strong: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "tr" in self.open and "small" not in self.open:
            self.rows[-1][-1] += data
            if "strong" in self.open:
                self.strong.append(data)


def test_markdown_marks_the_best_and_what_reads_the_same() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "| Name | Up | Down | Free |",
        "|---|---:|---:|---:|",
        "| a\\|b | 50.0% | 1.00 (0.90 to 1.10) | 7 |",
        "| <c> | **75.0%** (70.0% to 80.0%) | **0.50** | – |",
        "| d | – | **0.50** | 3 |",
    ]


def test_figures_close_to_the_best_are_marked_where_that_is_asked_for() -> None:
    rows = [
        {"name": "best", "down": Estimate(1.0, 0.8, 1.2, beside="(.5)")},
        {"name": "close", "down": Estimate(1.3, 1.1, 1.5, beside="(a|b)")},
        {"name": "apart", "down": Estimate(1.4, 1.3, 1.5)},
        {"name": "unknown", "down": 1.01},
        {"name": "missing", "down": None},
    ]
    plain = Column("down", "Down", ".2f", best="low")
    shown = [
        to_markdown(Table((COLUMNS[0], column), rows), intervals=False).splitlines()[2:]
        for column in (plain, replace(plain, close=True))
    ]
    assert shown[1] == [
        "| best | **1.00** (.5) |", "| close | 1.30† (a\\|b) |", "| apart | 1.40 |",
        "| unknown | 1.01 |", "| missing | – |",
    ]  # fmt: skip
    assert shown[0] == [line.replace("†", "") for line in shown[1]]
    html = to_html(Table((COLUMNS[0], replace(plain, close=True)), rows, note="One.\nTwo."), False)
    assert "<strong>1.00</strong> (.5)</td>" in html and ">1.30† (a|b)</td>" in html
    assert "One.<br>\nTwo.</figcaption>" in html


def test_without_intervals() -> None:
    assert " to " not in to_markdown(TABLE, intervals=False)
    assert " to " not in to_html(TABLE, intervals=False)


def test_html_holds_the_same_cells() -> None:
    cells = Cells()
    cells.feed(to_html(TABLE))
    assert cells.rows == [
        ["Name", "Up", "Down", "Free"],
        ["a|b", "50.0%", "1.00", "7"],
        ["<c>", "75.0%", "0.50", "–"],
        ["d", "–", "0.50", "3"],
    ]
    assert cells.strong == ["75.0%", "0.50", "0.50"]
    assert not cells.open


def test_html_says_what_scrolls_and_names_its_rows() -> None:
    html = to_html(TABLE)
    assert 'role="region" tabindex="0" aria-label="A &amp; B"' in html
    assert html.count('scope="row"') == 3 and html.count('scope="col"') == 4
    assert "<small>0.90 to 1.10</small>" in html


def test_the_terminal_shows_short_headings_and_all_figures() -> None:
    columns = (COLUMNS[0], Column("up", "A long heading", ".1%", best="high", short="up"))
    out = io.StringIO()
    Console(file=out, width=60).print(to_rich(Table(columns, ROWS, caption="Title")))
    text = out.getvalue()
    assert "Title" in text and "up" in text and "A long heading" not in text
    assert "75.0%" in text and "a|b" in text


def test_a_single_figure_is_not_the_best_of_anything() -> None:
    table = Table((COLUMNS[0], COLUMNS[1]), [{"name": "alone", "up": 0.5}])
    assert "**" not in to_markdown(table)


def test_a_row_without_a_figure_is_refused() -> None:
    with pytest.raises(ConfigError, match="no 'up'"):
        Table(COLUMNS, [{"name": "a", "down": 1.0, "free": 1.0}])
