from __future__ import annotations

from pathlib import Path

import matplotlib
from labelmem_paper.report.looks import looks
from labelmem_paper.report.marks import paths, points, save_png

from labelmem.render.plots import Axis, Series, to_svg

NAMES = ("lmn", "lmn-fixed", "static")


def series() -> list[Series]:
    styles = looks(NAMES)
    return [Series(name, [1, 2], [0.1 * i, 0.2], styles[name]) for i, name in enumerate(NAMES)]


def test_every_series_is_named_and_has_its_colour() -> None:
    for draw in (points, paths):
        svg = to_svg(draw(series(), Axis("cost", log=True), Axis("accuracy")))
        for name in NAMES:
            assert f">{name}</text>" in svg and looks(NAMES)[name].hex in svg


def test_a_png_is_written_and_no_global_state_is_left_behind(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    save_png(points(series(), Axis("cost"), Axis("accuracy")), tmp_path / "plot.png", dpi=40)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


def test_series_are_told_apart_without_colour() -> None:
    styles = looks([*NAMES, "counter", "sgd-head", "mine", "yours"])
    assert len({(look.dash, look.marker) for look in styles.values()}) == len(styles)
    assert len({look.marker for look in styles.values()}) == len(styles)
