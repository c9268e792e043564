"""The plots of all reports, by matplotlib without any global state.

A plot is a figure; :func:`to_svg` turns it into something to show.
Series are told apart by dashes or markers as well as colours, and named where they end rather than
in a legend that lies over them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from labelmem.errors import MissingExtraError
from labelmem.render.palette import GRID, INK, MUTED, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Axis",
    "Series",
    "canvas",
    "inside_height",
    "limit",
    "lines",
    "style",
    "to_svg",
    "weight",
]

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and recoloured
    "svg.hashsalt": "labelmem",  # the same figure gives the same bytes
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

_AROUND, _LINE = 0.85, 0.22  # what lies above and below the inside, and a name's line, in inches


@dataclass(frozen=True)
class Series:
    """Some numbers and how they are drawn."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: Look
    strong: bool = False
    """Whether it is what the plot is about, and drawn so."""
    faint: bool = False
    """Whether it is only there to be compared with: thin, below the others, its name small."""


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    label: str
    percent: bool = False
    log: bool = False
    span: tuple[float, float] | None = None
    """Its ends; None lets the data decide."""


def lines(series: Sequence[Series], x: Axis, y: Axis) -> Figure:
    """Curves over time or position, each named at its right end; many need a higher figure."""
    with style():
        figure, axes = canvas(x, y, names=len(series))
        for one in series:
            axes.plot(
                one.x,
                one.y,
                color=one.look.hex,
                linestyle=one.look.dash,
                linewidth=weight(one, (0.9, 1.6, 2.4)),
                zorder=weight(one, (1.5, 2, 3)),
            )
        axes.margins(x=0)
        limit(axes, x, y)
        _name_ends(figure, axes, [one for one in series if len(one.x)])
    return figure


def to_svg(figure: Figure, ground: str = "none") -> str:
    """The figure as a complete SVG document, its text as text, the same bytes every time.

    A page puts its own ground below; a drawing that stands alone needs one to be read anywhere.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with style():
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata=nothing, facecolor=ground)
    return out.getvalue()


def style() -> Any:
    """Our settings, for as long as a figure is being drawn."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError(
            "plots need matplotlib, which is not installed: pip install matplotlib"
        ) from error
    return matplotlib.rc_context(_STYLE)


def canvas(x: Axis, y: Axis, names: int = 0) -> tuple[Figure, Axes]:
    """An empty plot with its axes named, high enough for so many names one above another."""
    from matplotlib.figure import Figure

    height = max(3.4, _AROUND + names * _LINE)
    figure = Figure(figsize=(5.4, height), layout="constrained")
    axes = figure.subplots()
    # The name of the vertical axis stands above it, level, where it can be read.
    axes.set_title(y.label, loc="left", fontsize=11, color=MUTED, pad=12)
    axes.set_xlabel(x.label)
    axes.tick_params(length=0)
    return figure, axes


def limit(axes: Axes, x: Axis, y: Axis) -> None:
    """Scale, ends and numbers of both axes; call it once all is drawn."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        if wanted.log:
            axis.axes.set(**{f"{axis.axis_name}scale": "log"})
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
        if wanted.percent:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
        if wanted.span is not None:
            axis.axes.set(**{f"{axis.axis_name}lim": wanted.span})
        low, high = axis.get_view_interval()
        if wanted.log and high < 100 * low:  # powers of ten alone would be too few numbers
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def inside_height(figure: Figure) -> float:
    """About how high the inside of a plot is, in points."""
    return float(72 * (figure.get_figheight() - _AROUND))


def weight(one: Series, weights: tuple[float, float, float]) -> float:
    """The first of three weights for a faint series, the last for a strong one."""
    return weights[0 if one.faint else 2 if one.strong else 1]


def _name_ends(figure: Figure, axes: Axes, series: Sequence[Series]) -> None:
    """Write each name beside the end of its curve, apart from the others."""
    low, high = axes.get_ylim()
    heights = [(one.y[-1] - low) / (high - low) for one in series]
    line = (16 if len(series) < 8 else 11.5) / inside_height(figure)
    gap = min(line, 1 / max(1, len(series) - 1))
    for one, end, height in zip(series, heights, _inside(_apart(heights, gap), gap), strict=True):
        if abs(height - end) > gap / 4:  # a name that had to move is led back to its curve
            axes.plot(
                (1, 1.03),
                (end, height),
                transform=axes.transAxes,
                clip_on=False,
                color=one.look.hex,
                linewidth=0.6,
            )
        axes.annotate(
            one.name,
            xy=(1.03, height),
            xycoords="axes fraction",
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            color=one.look.hex,
            fontsize=weight(one, (9, 11, 11)),
            fontweight="bold" if one.strong else "normal",
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights as little as needed so that neighbours are at least ``gap`` apart."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    # Without the gaps between them they must only not fall: an isotonic regression, which has a
    # closed form. It is slow for many numbers, but these are the names of a plot.
    free = [heights[i] - place * gap for place, i in enumerate(order)]
    placed = [0.0] * len(heights)
    for place, i in enumerate(order):
        level = max(
            min(fmean(free[first : last + 1]) for last in range(place, len(free)))
            for first in range(place + 1)
        )
        placed[i] = level + place * gap
    return placed


def _inside(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights that are ``gap`` apart back between 0 and 1, as far as there is room."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for above, i in enumerate(reversed(order)):
        placed[i] = min(placed[i], 1 - above * gap)
    for below, i in enumerate(order):
        placed[i] = max(placed[i], below * gap)
    return placed
