from __future__ import annotations

from pathlib import Path

import pytest
from render.html_checks import check_page

from labelmem.errors import StorageError
from labelmem.render.page import Page
from labelmem.render.palette import Look
from labelmem.render.plots import Axis, Series, lines, to_svg
from labelmem.render.tables import Column, Table


def make_page() -> Page:
    figure = lines([Series("one", [1, 2, 3], [0.1, 0.2, 0.4], Look("blue"))], Axis("x"), Axis("y"))
    svg = to_svg(figure)
    page = Page("Title & more", "Lead <b>.")
    page.section("First")
    page.text("One.", "Two < three.")
    page.points(["a & b"])
    page.terms([("term", "meaning")])
    page.table(Table([Column("a", "A"), Column("b", "B", ".1f")], [{"a": "x", "b": 1.0}]))
    page.section("Second")
    page.heading("Smaller")
    page.figures((svg, "Left.", "Rising."), (svg, "Right.", "The same."))
    return page


def test_the_page_is_sound_and_self_contained() -> None:
    check_page(make_page().render())


def test_text_is_escaped() -> None:
    html = make_page().render()
    assert "<h1>Title &amp; more</h1>" in html
    assert "Lead &lt;b&gt;." in html
    assert "<p>One. Two &lt; three.</p>" in html


def test_sections_are_linked_from_the_top() -> None:
    html = make_page().render()
    assert '<a href="#part-2">Second</a>' in html and '<h2 id="part-2">Second</h2>' in html


def test_drawings_follow_dark_mode_and_say_what_they_show() -> None:
    html = make_page().render()
    drawing = html[html.index("<svg") : html.index("</svg>")]
    assert "var(--blue)" in drawing and "#0067a5" not in drawing
    assert 'aria-label="Left."' in drawing
    assert "prefers-color-scheme: dark" in html and "@media print" in html


def test_a_page_replaces_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("old")
    make_page().write(target)
    assert target.read_text(encoding="utf-8") == make_page().render()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="folder must exist"):
        make_page().write(tmp_path / "nowhere" / "page.html")
