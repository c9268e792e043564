"""Strips of pictures and the plots of image tables, from made-up records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from labelmem_paper.experiments.images.drawings import made_up as drawings
from labelmem_paper.report.image_plots import image_drawings
from labelmem_paper.report.picture_strips import add_strips, strip_html
from labelmem_paper.report.result_page import page_of
from labelmem_paper.report.result_plots import Drawing
from labelmem_paper.report.results import TableResults, load_results
from render.html_checks import check_page
from report.made_up import Record, keep, made_up

from labelmem.render.page import Page

STRIP: Record = {
    "sequence": 3,
    "steps": [
        {
            "picture": 4, "answer": 0, "right": False, "again": False, "known": True,
            "probability": 0.4, "theta": None, "cells": [],
        },
        {
            "picture": 5, "answer": 4, "right": True, "again": True, "known": False,
            "probability": 0.9, "theta": 0.75, "cells": [{"pictures": [4, 6], "share": 0.8}],
        },
    ],
}  # fmt: skip


def tables(folder: Path, table: str, *records: Record) -> TableResults:
    (found,) = load_results(keep(folder, records, table), records[0]["size"])
    return found


def run(method: str, table: str = "table3", **changes: object) -> Record:
    metrics = {"accuracy": 0.9, "accuracy_new": 0.8, "accuracy_seen": 0.95}
    interval = {name: [value - 0.01, value + 0.01] for name, value in metrics.items()}
    usual = {"table": table, "metrics": metrics, "interval": interval, "curve": []}
    return made_up(method, **(usual | changes))


def curves_of(drawing: Drawing) -> list[tuple[list[float], list[float]]]:
    lines = drawing.figure.axes[0].lines
    return [
        (np.asarray(one.get_xdata()).tolist(), np.asarray(one.get_ydata()).tolist())
        for one in lines
    ]


def test_a_strip_says_what_happened_at_every_step() -> None:
    pictures = drawings().pixels
    html = strip_html(STRIP, pictures)
    page = Page("A strip")
    page.raw(html)
    check_page(page.render())
    assert html.count("<svg") == 5  # shown and answered twice, and one cell
    assert html.index("seen label, first time") < html.index("new label, again")
    assert "<strong>wrong</strong>" in html and "0.75" in html and "80%" in html
    # A cell of two pictures is drawn as their mean: ink that only one of them has is paler.
    mean = pictures[[4, 6]].mean(axis=0)
    pale = int(((mean > 0) & (mean < mean.max())).sum())
    assert html.count('fill-opacity="0.50"') == pale


def test_pictures_come_from_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("lmn", dataset="drawings", size="smoke", strips=[STRIP])
    smoke = tables(
        tmp_path / "smoke", "table3", made, run("static", dataset="drawings", size="smoke")
    )
    page = page_of([smoke], {}).render()
    check_page(page)
    assert "Sequences of lmn, step by step" in page and page.count('class="pixels"') == 5
    monkeypatch.setenv("LABELMEM_DATA", str(tmp_path / "empty"))
    real = tables(tmp_path / "real", "table3", run("lmn", dataset="omniglot", strips=[STRIP]))
    absent = Page("No data")
    add_strips(absent, real.datasets[0])
    assert "LABELMEM_DATA" in absent.render() and str(tmp_path) not in absent.render()


def test_the_trade_off_has_a_line_for_each_margin(tmp_path: Path) -> None:
    thetas = (0.1, 0.5, 0.9)
    curves = [
        [
            {"theta": t, "margin": m, "accuracy_seen": 0.6 + t / 10 + s / 100, "accuracy_new": t}
            for m in (0.0, "always")
            for t in thetas
        ]
        for s in (0, 1)
    ]
    fixed = [run("lmn-theta-fixed", seed=s, tradeoff=curves[s]) for s in (0, 1)]
    table = tables(tmp_path, "table3", *fixed, run("lmn"))
    (drawing,) = image_drawings(table, table.datasets[0])
    drawn = curves_of(drawing)
    lines = [x for x, _ in drawn if len(x) == len(thetas)]
    assert len(lines) == 2 and lines[0] == pytest.approx([0.615, 0.655, 0.695])
    assert [y for x, y in drawn if len(x) == 1] == [[0.8]]


def test_rare_labels_are_drawn_over_the_number_of_cells(tmp_path: Path) -> None:
    def limited(method: str, base: float) -> Record:
        metrics = {f"accuracy_rare_at_{n}": base + n / 1000 for n in (200, 50)}
        interval = {name: [0.0, 1.0] for name in metrics}
        return run(method, "limited", dataset="omniglot", metrics=metrics, interval=interval)

    table = tables(tmp_path, "limited", limited("lmn", 0.3), limited("kaiser", 0.1))
    (drawing,) = image_drawings(table, table.datasets[0])
    x, y = curves_of(drawing)[0]
    assert x == [50, 200] and y == pytest.approx([0.35, 0.5])
    other = tables(tmp_path / "other", "table2", made_up("lmn"))
    assert list(image_drawings(other, other.datasets[0])) == []
