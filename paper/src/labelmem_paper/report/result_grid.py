"""Every method on every data set in one table, narrow enough for a README."""

from __future__ import annotations

from dataclasses import replace

from labelmem.render.tables import NOTHING, Column, Table, Value
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.result_cells import MOST, label_of, no_figure, others_of, short, width_of
from labelmem_paper.report.results import DatasetResults, Result, TableResults

__all__ = ["cells_meaning", "column_of", "grid_of", "printed_of"]


def grid_of(results: TableResults) -> Table:
    """The methods that are compared as rows, the data sets as columns, all metrics in a cell."""
    notes = Footnotes()
    metric = metric_of(results.table.metrics[0])
    columns = [Column("method", "method")]
    for one in results.datasets:
        columns.append(replace(column_of(one, metric.format), best=metric.best, close=True))
    most = max(len(result.records) for one in results.datasets for result in one.results)
    rows = []
    for method in results.compared:
        sizes = {r.cells for one in results.datasets for r in one.results if r.method == method}
        for cells in sorted(sizes or {None}, key=lambda size: size or 0):
            row: dict[str, Value] = {"method": label_of(results, method, notes, cells)}
            for one in results.datasets:
                result = one.find(method, cells)
                row[one.dataset] = (
                    no_figure(results, one, method, notes)
                    if result is None
                    else _figure(results, result, most, notes)
                )
            rows.append(row)
    caption = f"{results.table.title}: every method on every data set."
    return Table(columns, rows, caption, "\n".join([cells_meaning(results), *notes.texts]))


def printed_of(results: TableResults) -> Table | None:
    """What the paper printed for the same data sets; None where it printed nothing."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for method in dict.fromkeys(m for by in results.table.published.values() for m in by):
        cells = tuple(_printed(results, one.dataset, method) for one in results.datasets)
        if set(cells) != {NOTHING}:
            # The paper has one LMN where we have several.
            rows.setdefault(cells, []).append(results.label(method))
    if not rows:
        return None
    names = [one.dataset for one in results.datasets]
    # The paper had all of every data set, so that no heading calls one a subset.
    columns = [Column("method", "method"), *(Column(name, name, "s") for name in names)]
    shown: list[dict[str, Value]] = [
        {"method": ", ".join(methods), **dict(zip(names, cells, strict=True))}
        for cells, methods in rows.items()
    ]
    return Table(columns, shown, f"The paper's figures: {_titles(results)}.")


def column_of(dataset: DatasetResults, spec: str) -> Column:
    """The column of a data set; that it is only a part of it belongs into the heading."""
    mark = " (subset)" if dataset.subset else ""
    return Column(dataset.dataset, dataset.dataset + mark, spec)


def cells_meaning(results: TableResults, after: str = "± half of its 95 % interval") -> str:
    """What stands in each cell of a table of data sets."""
    return f"In each cell: {_titles(results, after)}."


def _titles(results: TableResults, after: str = "") -> str:
    first, *others = [metric_of(name).title for name in results.table.metrics[:MOST]]
    return " ".join(filter(None, [first, after, f"({', '.join(others)})" if others else ""]))


def _figure(results: TableResults, result: Result, most: int, notes: Footnotes) -> Value:
    metrics = results.table.metrics
    estimate = result.estimate(metrics[0])
    if estimate is None:
        return None
    seeds = len(result.records)
    fewer = f"{seeds} of {most} seeds." if seeds < most else ""
    beside = [width_of(estimate, metrics[0]), others_of(result, metrics)]
    return replace(estimate, beside=" ".join(filter(None, beside)) + notes.mark(fewer))


def _printed(results: TableResults, dataset: str, method: str) -> str:
    metrics = results.table.metrics[:MOST]
    figures = results.table.published.get(dataset, {}).get(method, {})
    if metrics[0] not in figures:
        return NOTHING
    texts = [short(figures[name], metric_of(name).printed) for name in metrics if name in figures]
    return texts[0] + (f" ({', '.join(texts[1:])})" if len(texts) > 1 else "")
