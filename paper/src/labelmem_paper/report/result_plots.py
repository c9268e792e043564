"""Recorded results as plots: over the stream, against time, over memory size, and theta."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from labelmem.render.plots import Axis, Series, lines, to_svg
from labelmem_paper.experiments.records import Record
from labelmem_paper.report.looks import FAINT, look_of, looks
from labelmem_paper.report.marks import points
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.results import DatasetResults, Result, TableResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawing", "drawings_of", "memory_of", "position_of"]

USERS = 6
"""How many example users' thetas are drawn at most."""
MANY = 8
"""More methods than this cannot all have colours of their own."""
LEADING = ("lmn", "lmn-fixed", "counter", "static", "maml")
"""The methods that keep theirs then."""


@dataclass(frozen=True)
class Drawing:
    """A figure, what to call its files, and what to say below it."""

    name: str
    title: str
    sees: str
    figure: Figure

    @cached_property
    def svg(self) -> str:
        """The figure as an SVG document."""
        return to_svg(self.figure)


def drawings_of(results: TableResults, dataset: DatasetResults) -> Iterator[Drawing]:
    """Every plot that the records of a data set allow."""
    stem = f"{results.name}-{dataset.dataset}"
    shown = _shown(results, dataset)
    series = _drawn_as(shown)
    if position := position_of(results, dataset):
        yield position
    deciding = results.table.metrics[0]
    if timed := [series(r, point) for r in shown if (point := _cost(r, deciding))]:
        yield _against_time(f"{stem}-time", timed, deciding)
    if memory := memory_of(results, dataset):
        yield memory
    for result in shown:
        if traced := next((record for record in result.records if record.get("traces")), None):
            yield _theta(f"{stem}-theta-{result.method}", traced)


def position_of(results: TableResults, dataset: DatasetResults) -> Drawing | None:
    """The loss of every method that is compared, by position in the stream."""
    shown = _shown(results, dataset)
    series = _drawn_as(shown)
    curves = [series(result, curve) for result in shown if (curve := _curve(result.records))]
    if not curves:
        return None
    return _over_stream(f"{results.name}-{dataset.dataset}-position", curves)


def memory_of(results: TableResults, dataset: DatasetResults) -> Drawing | None:
    """The deciding metric of every method that was run with several sizes of its memory."""
    shown, metric = _shown(results, dataset), results.table.metrics[0]
    found = [(r, points) for r in shown if (points := _sizes(dataset, r, metric))]
    if not found:
        return None
    series = _drawn_as([result for result, _ in found])
    curves = [series(result, points) for result, points in found]
    return _over_memory(f"{results.name}-{dataset.dataset}-memory", curves, metric)


Points = tuple[Sequence[float], Sequence[float]]


def _shown(results: TableResults, dataset: DatasetResults) -> list[Result]:
    compared = results.compared
    return [result for result in dataset.largest() if result.method in compared]


def _drawn_as(shown: Sequence[Result]) -> Callable[[Result, Points], Series]:
    """How each method is drawn; it keeps its look in every plot of a data set."""
    names = [result.method for result in shown]
    many = len(names) > MANY
    styles = looks([name for name in names if not many or name in LEADING])

    def series(result: Result, points: Points) -> Series:
        name = result.method
        look = styles.get(name, FAINT)
        return Series(name, *points, look, strong=name == "lmn", faint=look is FAINT)

    return series


def _curve(records: Sequence[Record]) -> Points | None:
    """Loss by position, averaged over seeds at the positions that all of them reach."""
    curves = [curve for record in records if (curve := _bins(record))]
    if not curves:
        return None
    reach = min(x[-1] for x, _ in curves)
    grid = [x for x in curves[0][0] if x <= reach]
    # Bins end where the longest stream ends, so that seeds may cut the positions differently.
    losses = [np.interp(np.log(grid), np.log(x), y) for x, y in curves]
    return grid, np.mean(losses, axis=0).tolist()


def _bins(record: Record) -> Points | None:
    """The middle of each bin, counted from 1, and its loss; without the thin bins at the end."""
    enough = record.get("streams", 0) / 2
    bins = [one for one in record.get("curve", []) if one["tokens"] >= enough]
    if len(bins) < 2:
        return None
    middles = [(one["start"] + 1 + one["stop"]) / 2 for one in bins]
    return middles, [float(one["loss"]) for one in bins]


def _cost(result: Result, metric: str) -> Points | None:
    estimate = result.estimate(metric)
    if estimate is None or not result.us_per_token > 0:
        return None
    return [result.us_per_token], [estimate.value]


def _sizes(dataset: DatasetResults, of: Result, metric: str) -> Points | None:
    """Sizes of the memory in order, and the metric with each; None where there is only one."""
    found = {
        result.cells: estimate.value
        for result in dataset.results
        if result.cells is not None
        and (result.method == of.method or _resized(result, of))
        and (estimate := result.estimate(metric)) is not None
    }
    cells = sorted(found)
    return (cells, [found[n] for n in cells]) if len(cells) > 1 else None


def _resized(result: Result, of: Result) -> bool:
    """Whether a row is another one with a memory of another size, and differs in nothing else."""
    if result.variant_of != of.method or result.cells == of.cells:
        return False
    one, other = (_but_for_size(r.records[0]["config"].get("options", {})) for r in (result, of))
    return one == other


def _but_for_size(options: Record) -> Record:
    memory = {
        name: value for name, value in options.get("memory", {}).items() if name != "capacity"
    }
    return {name: value for name, value in options.items() if name != "is"} | {"memory": memory}


def _over_stream(name: str, series: Sequence[Series]) -> Drawing:
    x, y = Axis("position in the stream", log=True), Axis("log-perplexity (nats)")
    sees = (
        "Mean over all streams and seeds at each position: how fast a method learns its user. "
        "Positions that few streams reach are left out."
    )
    title = "Log-perplexity over the stream."
    return Drawing(name, title, sees, _plain_ticks(lines(series, x, y)))


def _against_time(name: str, series: Sequence[Series], metric: str) -> Drawing:
    x = Axis("microseconds per token", log=True, span=_decades([one.x[0] for one in series]))
    sees = f"Each mark is a method; left is faster. {_good(metric)}"
    title = f"{_upper(metric_of(metric).title)} against time."
    return Drawing(name, title, sees, _plain_ticks(points(series, x, _axis(metric))))


def _over_memory(name: str, series: Sequence[Series], metric: str) -> Drawing:
    x = Axis("cells of the memory", log=True)
    title = f"{_upper(metric_of(metric).title)} over memory size."
    sees = f"For methods that were run with several sizes. {_good(metric)}"
    return Drawing(name, title, sees, _plain_ticks(lines(series, x, _axis(metric))))


def _theta(name: str, record: Record) -> Drawing:
    method = record["method"]
    series = [
        Series(str(trace["user"]), range(1, 1 + len(trace["theta"])), trace["theta"], look_of(i))
        for i, trace in enumerate(record["traces"][:USERS])
        if trace["theta"]
    ]
    figure = lines(series, Axis("position in the stream"), Axis("theta", span=(0, 1)))
    sees = (
        f"How much {method} trusts the memory (1) over the model (0), for some test users of seed "
        f"{record['seed']}."
    )
    return Drawing(name, f"Theta of {method} over time.", sees, figure)


def _plain_ticks(figure: Figure) -> Figure:
    """Write 1, 10, 100 along a logarithmic axis, not 1.0."""
    figure.axes[0].xaxis.set_major_formatter("{x:g}")
    return figure


def _axis(metric: str) -> Axis:
    found = metric_of(metric)
    return Axis(found.title, percent=found.percent)


def _good(metric: str) -> str:
    best = metric_of(metric).best
    return "" if best is None else f"{_upper(best)}er is better."


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around some values, so that the axis has at least two numbers on it."""
    low, high = math.log10(min(values) / 1.2), math.log10(max(values) * 1.2)
    return 10.0 ** math.floor(low), 10.0 ** math.ceil(high)


def _upper(title: str) -> str:
    return title[:1].upper() + title[1:]
