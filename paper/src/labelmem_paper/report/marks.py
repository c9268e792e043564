"""Plots of marks and paths in a plane, and figures as PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labelmem.render.plots import Axis, Series, canvas, inside_height, limit, style, weight
from labelmem.storage import write_file
from labelmem_paper.report.naming import beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["paths", "points", "save_png"]

_WIDTH = 330.0  # about how wide the inside of a plot is, in points


def paths(series: Sequence[Series], x: Axis, y: Axis) -> Figure:
    """Curves in a plane that end anywhere, and so are named in a legend; one point is a mark."""
    with style():
        figure, axes = canvas(x, y)
        for one in series:
            alone = len(one.x) == 1
            axes.plot(
                one.x,
                one.y,
                color=one.look.hex,
                linestyle="" if alone else one.look.dash,
                marker=one.look.marker if alone else "",
                markersize=9,
                linewidth=weight(one, (0.9, 1.6, 2.4)),
                zorder=weight(one, (1.5, 2, 3)),
                label=one.name,
            )
        axes.margins(0.05)
        limit(axes, x, y)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def points(series: Sequence[Series], x: Axis, y: Axis) -> Figure:
    """One mark for each series (its first point), named beside it."""
    with style():
        figure, axes = canvas(x, y, names=len(series))
        for one in series:
            axes.plot(
                one.x[:1],
                one.y[:1],
                one.look.marker,
                color=one.look.hex,
                markersize=weight(one, (6, 8, 10)),
                zorder=weight(one, (1.5, 2, 3)),
            )
        axes.margins(x=0.12, y=0.12)
        limit(axes, x, y)
        _name_points(figure, axes, series)
    return figure


def save_png(figure: Figure, path: str | Path, dpi: int = 160) -> None:
    """Write the figure as a PNG on white ground."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out = io.BytesIO()
    with style():
        FigureCanvasAgg(figure)
        figure.savefig(out, format="png", dpi=dpi, facecolor="white")
    write_file(path, out.getvalue())


def _name_points(figure: Figure, axes: Axes, series: Sequence[Series]) -> None:
    """Write each name beside its mark, where it covers nothing."""
    axes.autoscale_view()
    order = sorted(series, key=lambda one: (not one.strong, one.faint))
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [to_axes.transform((one.x[0], one.y[0])) for one in order]
    frame = _WIDTH, inside_height(figure)
    marks = [(float(x) * frame[0], float(y) * frame[1]) for x, y in places]
    boxes = beside(marks, [one.name for one in order], frame)
    for one, mark, box in zip(order, marks, boxes, strict=True):
        axes.annotate(
            one.name,
            xy=(one.x[0], one.y[0]),
            xytext=(box.x - mark[0], box.y - mark[1]),
            textcoords="offset points",
            ha="center",
            va="center",
            color=one.look.hex,
            fontsize=weight(one, (9, 11, 11)),
            fontweight="bold" if one.strong else "normal",
        )
