"""Plots of what only tables of pictures record: the trade-off of theta, rare labels over memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from labelmem.render.plots import Axis, Series, lines
from labelmem_paper.experiments.records import Record
from labelmem_paper.report.looks import look_of, looks
from labelmem_paper.report.marks import paths
from labelmem_paper.report.result_plots import Drawing
from labelmem_paper.report.results import DatasetResults, TableResults

__all__ = ["image_drawings"]

RARE = "accuracy_rare_at_"
PARTS = ("accuracy_seen", "accuracy_new")
"""What theta trades for each other."""
AGAINST = ("lmn-theta-fixed", "lmn-fixed")
"""Rows whose trade-off is drawn, the first that has one: it should have the key of ``lmn``."""


def image_drawings(results: TableResults, dataset: DatasetResults) -> Iterator[Drawing]:
    """Every such plot that the records of a data set allow."""
    stem = f"{results.name}-{dataset.dataset}"
    records = {result.method: list(result.records) for result in dataset.results}
    for method in AGAINST:
        if found := [one for one in records.get(method, ()) if one.get("tradeoff")]:
            yield _tradeoff(f"{stem}-tradeoff", method, found, records.get("lmn", []))
            break
    rare = {method: points for method, of in records.items() if (points := _rare(of))}
    if rare:
        yield _over_cells(f"{stem}-rare", rare)


def _tradeoff(
    name: str, method: str, records: Sequence[Record], trained: Sequence[Record]
) -> Drawing:
    """New against seen labels: a line of thetas for each margin, and the trained combiner."""
    margins = dict.fromkeys(point["margin"] for point in records[0]["tradeoff"])
    series = []
    for number, margin in enumerate(sorted(margins, key=_width)):
        x, y = (_along(records, margin, part) for part in PARTS)
        series.append(Series(f"margin {margin}", x, y, look_of(number)))
    sees = (
        f"Each line is {method} at one margin, theta going from the network alone to the memory "
        "alone. Right and up is better."
    )
    if trained:
        x, y = ([_mean(trained, part)] for part in PARTS)
        series.append(Series("lmn", x, y, looks(["lmn"])["lmn"], strong=True))
        sees += " The mark is lmn with its trained combiner."
    axes = [Axis(f"accuracy, {which} labels", percent=True) for which in ("seen", "new")]
    return Drawing(name, "New against seen labels.", sees, paths(series, *axes))


def _width(margin: object) -> float:
    """Margins in order; the one that is always missed comes last."""
    return float(margin) if isinstance(margin, int | float) else math.inf


def _along(records: Sequence[Record], margin: object, part: str) -> list[float]:
    """A figure at each theta in turn, mean over seeds."""
    by_seed = [[p[part] for p in one["tradeoff"] if p["margin"] == margin] for one in records]
    return [float(value) for value in np.mean(by_seed, axis=0)]


def _mean(records: Sequence[Record], part: str) -> float:
    return float(np.mean([record["metrics"][part] for record in records]))


def _rare(records: Sequence[Record]) -> tuple[list[float], list[float]] | None:
    """Numbers of cells, and the accuracy on rare labels with them, mean over seeds."""
    names = [name for name in (records[0]["metrics"] if records else ()) if name.startswith(RARE)]
    if not names:
        return None
    cells = sorted(int(name.removeprefix(RARE)) for name in names)
    return [float(n) for n in cells], [_mean(records, f"{RARE}{n}") for n in cells]


def _over_cells(name: str, rare: dict[str, tuple[list[float], list[float]]]) -> Drawing:
    styles = looks(list(rare))
    series = [
        Series(method, *points, styles[method], strong=method == "lmn")
        for method, points in rare.items()
    ]
    x = Axis("cells of the memory", log=True)
    figure = lines(series, x, Axis("accuracy, rare labels", percent=True))
    figure.axes[0].xaxis.set_major_formatter("{x:g}")
    sees = (
        "Accuracy on the labels that come least often, as the memory shrinks; first showings do "
        "not count. Mean over seeds; higher is better."
    )
    return Drawing(name, "Rare labels in a small memory.", sees, figure)
