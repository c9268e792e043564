"""One self-contained HTML page: no script, nothing to load, good on any screen and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from labelmem.render.palette import css_variables
from labelmem.render.svg import inline
from labelmem.render.tables import Table, to_html

__all__ = ["Page"]


class Page:
    """Collects headings, sentences, tables and drawings, in reading order.

    All text is escaped; only drawings and what :meth:`raw` is given go in as they are.

    Parameters
    ----------
    title
        The heading of the page.
    lead
        One or two sentences below it: what a hurried reader should know.

    Examples
    --------
    >>> page = Page("Results", "All of them.")
    >>> page.section("First")
    >>> page.text("5 < 6")
    >>> "<p>5 &lt; 6</p>" in page.render()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title, self.lead = title, lead
        self._parts: list[str] = []
        self._sections: list[tuple[str, str]] = []
        self._drawings = 0

    def section(self, title: str) -> None:
        """Start a part of the page, with a link to it at the top."""
        anchor = f"part-{len(self._sections) + 1}"
        self._sections.append((anchor, title))
        self._parts.append(f'<h2 id="{anchor}">{escape(title)}</h2>')

    def heading(self, title: str) -> None:
        """Start a smaller part."""
        self._parts.append(f"<h3>{escape(title)}</h3>")

    def text(self, *sentences: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(' '.join(sentences))}</p>")

    def points(self, items: Iterable[str]) -> None:
        """Add a list."""
        entries = "".join(f"<li>{escape(item)}</li>" for item in items)
        self._parts.append(f"<ul>{entries}</ul>")

    def terms(self, meanings: Sequence[tuple[str, str]]) -> None:
        """Add words and what they mean."""
        entries = "".join(
            f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in meanings
        )
        self._parts.append(f"<dl>{entries}</dl>")

    def table(self, table: Table, intervals: bool = True) -> None:
        """Add a table."""
        self._parts.append(to_html(table, intervals))

    def figures(self, *figures: tuple[str, str, str]) -> None:
        """Add drawings side by side where there is room: each (svg, title, what one sees)."""
        shown = "\n".join(self._figure(*figure) for figure in figures)
        self._parts.append(f'<div class="figures">\n{shown}\n</div>')

    def raw(self, html: str) -> None:
        """Add markup as it is; the caller has escaped what needs it."""
        self._parts.append(html)

    def _figure(self, svg: str, title: str, sees: str) -> str:
        self._drawings += 1
        drawing = inline(svg, f"d{self._drawings}", title)
        caption = f"<strong>{escape(title)}</strong> {escape(sees)}"
        return f"<figure>\n{drawing}\n<figcaption>{caption}</figcaption>\n</figure>"

    def render(self) -> str:
        """The whole page as HTML."""
        links = "".join(f'<a href="#{a}">{escape(t)}</a>' for a, t in self._sections)
        contents = f'<nav aria-label="Contents">{links}</nav>\n' if len(links) > 1 else ""
        lead = f'<p class="lead">{escape(self.lead)}</p>\n' if self.lead else ""
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{_style()}</style>\n</head>\n"
            f"<body>\n<header>\n<h1>{escape(self.title)}</h1>\n{lead}{contents}</header>\n"
            f"<main>\n{body}\n</main>\n</body>\n</html>\n"
        )

    def write(self, path: str | Path) -> None:
        """Write the page to a file; a reader sees the old page or the new one, never half."""
        from labelmem.storage import write_file

        write_file(path, self.render().encode())


def _style() -> str:
    sheet = (resources.files("labelmem.render") / "page.css").read_text(encoding="utf-8")
    light, dark = (f":root {{ {css_variables(dark)} }}" for dark in (False, True))
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n{sheet}"
