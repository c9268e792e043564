"""Small tables for notebooks: every text is escaped, and colours are the page's own."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["bars", "table"]

_LONG = 60
_BAR = "height:0.8em;background:currentColor;opacity:0.5;"  # seen on dark pages and on light ones


def table(title: str, rows: Iterable[tuple[object, object]]) -> str:
    """Names and what there is of each.

    Examples
    --------
    >>> print(table("Stream", [("cells", 3), ("form", "<b>")]))
    <table><caption>Stream</caption>
    <tr><th>cells</th><td>3</td></tr>
    <tr><th>form</th><td>&lt;b&gt;</td></tr>
    </table>
    """
    return _table(title, ((name, _text(value)) for name, value in rows))


def bars(title: str, rows: Iterable[tuple[object, float]]) -> str:
    """Labels and their probabilities, with a bar for each."""
    drawn = ((repr(label), f"{_bar(share)}</td><td>{share:.3f}") for label, share in rows)
    return _table(title, drawn)


def _table(title: str, rows: Iterable[tuple[object, str]]) -> str:
    lines = [f"<tr><th>{_text(name)}</th><td>{cell}</td></tr>" for name, cell in rows]
    return "\n".join([f"<table><caption>{_text(title)}</caption>", *lines, "</table>"])


def _bar(share: float) -> str:
    return f'<div style="width:{10 * share:.2f}em;{_BAR}"></div>'


def _text(value: object) -> str:
    text = str(value)
    return escape(text if len(text) <= _LONG else text[:_LONG] + "…")
