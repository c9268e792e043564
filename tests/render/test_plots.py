from __future__ import annotations

import itertools
import math
import sys

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from labelmem.errors import MissingExtraError
from labelmem.render.palette import COLOURS, METHODS, Look, css_variables
from labelmem.render.plots import (
    Axis,
    Series,
    _apart,
    _inside,
    lines,
    to_svg,
)

NAMES = ("lmn", "lmn-fixed", "static")


def series(length: int = 5) -> list[Series]:
    return [
        Series(name, list(range(1, 1 + length)), [0.1 * i] * length, METHODS[name])
        for i, name in enumerate(NAMES)
    ]


def figures() -> list[Figure]:
    return [
        lines(series(), Axis("time"), Axis("accuracy", percent=True)),
        lines(series(), Axis("cost", log=True), Axis("accuracy", span=(0, 1))),
    ]


@pytest.mark.parametrize("kind", range(2))
def test_text_is_text_and_every_series_is_named(kind: int) -> None:
    svg = to_svg(figures()[kind])
    for name in NAMES:
        assert f">{name}</text>" in svg
        assert METHODS[name].hex in svg
    assert "dc:date" not in svg


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert [to_svg(f) for f in figures()] == [to_svg(f) for f in figures()]


def test_no_global_state_is_left_behind() -> None:
    before = dict(matplotlib.rcParams)
    had_pyplot = "matplotlib.pyplot" in sys.modules
    for figure in figures():
        to_svg(figure)
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot


def test_names_stand_beside_the_ends_in_their_order() -> None:
    axes = figures()[0].axes[0]
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    assert heights["lmn"] < heights["lmn-fixed"] < heights["static"]


def test_percent_and_few_decades() -> None:
    figure = lines(series(), Axis("cost", log=True, span=(3, 60)), Axis("a", percent=True))
    svg = to_svg(figure)
    for written in (">5<", ">10<", ">50<", ">20%<"):
        assert written in svg


@given(st.lists(st.floats(0, 1), max_size=8))
def test_names_keep_apart_and_keep_their_order(heights: list[float]) -> None:
    placed = _apart(heights, gap=0.1)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    moved = [placed[i] for i in order]
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(moved))
    far = [heights[i] for i in order]
    if all(b - a >= 0.1 for a, b in itertools.pairwise(far)):
        assert placed == pytest.approx(heights)


@given(st.lists(st.integers(0, 6), max_size=6))
def test_names_move_as_little_as_they_can(places: list[int]) -> None:
    gap, heights = 2, sorted(places)
    placed = _apart(heights, gap)
    moved = sum((a - b) ** 2 for a, b in zip(placed, heights, strict=True))
    # The best way with all names at whole and half places.
    order = range(len(heights))
    best = {h / 2: (h / 2 - heights[0]) ** 2 for h in range(-30, 50)} if heights else {0.0: 0.0}
    for i in order[1:]:
        best = {
            h / 2: (h / 2 - heights[i]) ** 2
            + min((cost for below, cost in best.items() if below <= h / 2 - gap), default=math.inf)
            for h in range(-30, 50)
        }
    assert moved <= min(best.values()) + 1e-9


@given(st.lists(st.floats(-1, 2), max_size=8))
def test_names_are_brought_inside_and_stay_apart(heights: list[float]) -> None:
    placed = sorted(_inside(_apart(heights, gap=0.1), gap=0.1))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in placed)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(placed))


def test_a_ground_can_be_put_below() -> None:
    figure = figures()[0]
    assert "fill: #ffffff" in to_svg(figure, ground="white")
    assert "fill: #ffffff" not in to_svg(figure)


def test_without_matplotlib_the_install_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        lines(series(), Axis("x"), Axis("y"))


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", COLOURS)
def test_colours_can_be_read_on_both_grounds(name: str) -> None:
    on_white = 1.05 / (_luminance(COLOURS[name].light) + 0.05)
    on_black = (_luminance(COLOURS[name].dark) + 0.05) / (_luminance("#17191c") + 0.05)
    assert on_white >= 3 and on_black >= 4.5
    assert f"--{name}: {COLOURS[name].dark};" in css_variables(dark=True)
    assert Look(name).hex == COLOURS[name].light
