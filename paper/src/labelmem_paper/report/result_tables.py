"""Recorded results as tables: ours beside the paper's, and what must be known to read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labelmem.render.tables import CLOSE, Column, Table, Value
from labelmem_paper.datasets.registry import info, names
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.result_cells import label_of, no_figure
from labelmem_paper.report.results import DatasetResults, Result, TableResults

__all__ = ["NOTE", "caption_of", "notes_of", "table_of", "timed_on"]

NOTE = (
    "Figures are means over the seeds, with the 95 % bootstrap interval over streams: its bounds, "
    "or ± half of its width. The bounds are averaged over the seeds and not narrowed, because the "
    "test streams of different seeds overlap. The best of our figures in each column is bold; "
    f"{CLOSE} marks those that cannot be told from the best: 0 lies in the 95 % interval of the "
    "difference on the same streams or, where a record does not keep what that needs, the two "
    "intervals overlap."
)


def table_of(results: TableResults, dataset: DatasetResults, block: str = "") -> Table:
    """The methods on one data set: every metric of the table, the paper's figures beside ours.

    Parameters
    ----------
    block
        The heading of another part of the table; empty for the methods that are compared.
    """
    methods = results.blocks[block] if block else results.compared
    shown = [result for result in dataset.results if result.method in methods]
    notes = Footnotes()
    published = results.table.published.get(dataset.dataset, {})
    columns = [Column("method", "method")]
    if any(result.cells is not None for result in shown):
        columns.append(Column("cells", "cells", ",.0f"))
    for name in results.table.metrics:
        if not any(name in record["metrics"] for one in shown for record in one.records):
            continue
        metric = metric_of(name)
        columns.append(Column(name, metric.title, metric.format, metric.best, close=True))
        if any(name in figures for figures in published.values()):
            columns.append(Column(f"{name} paper", "paper", metric.printed))
    columns += [Column("us", "µs per token", ",.1f"), Column("seeds", "seeds", ".0f")]
    rows = []
    for method in methods:
        found = [result for result in shown if result.method == method]
        rows += [_row(results, dataset, result, notes) for result in found]
        if not found and method in results.table.not_run.get(dataset.dataset, {}):
            rows.append(_row_not_run(results, dataset, method, notes))
    title, extent = caption_of(dataset)
    part = f", {block}" if block else ""
    caption = f"{results.table.title}{part}: {title} ({dataset.dataset})."
    below = [extent, *notes_of(dataset), timed_on(dataset)]
    return Table(columns, rows, caption, "\n".join([" ".join(filter(None, below)), *notes.texts]))


def caption_of(dataset: DatasetResults) -> tuple[str, str]:
    """Which data set, and how much of it was predicted."""
    name = dataset.dataset
    title = info(name).title if name in names() else name
    streams = _span(record.get("streams") for record in dataset.records)
    tokens = _span(record.get("tokens") for record in dataset.records)
    kind = "test stream" if streams == "1" else "test streams"
    return title, f"{streams} {kind} and {tokens} tokens for each seed."


def notes_of(dataset: DatasetResults) -> list[str]:
    """What is particular to the runs on one data set."""
    notes = []
    if dataset.subset:
        notes.append(
            "The files are a subset of what was published: not a reproduction of the paper's "
            "figures."
        )
    if dataset.left_out:
        one = dataset.left_out == 1
        runs = "1 older run was" if one else f"{dataset.left_out} older runs were"
        notes.append(f"{runs} left out: the settings have changed since.")
    if not dataset.alike:
        notes.append("Not all methods ran with the same settings of the table.")
    return notes


def timed_on(dataset: DatasetResults) -> str:
    """Which devices the times are of."""
    devices = sorted({device for result in dataset.results for device in result.devices})
    return f"Timed on {' and '.join(devices)}." if devices else ""


def _row(
    results: TableResults, dataset: DatasetResults, result: Result, notes: Footnotes
) -> dict[str, Value]:
    row: dict[str, Value] = {
        "method": label_of(results, result.method, notes),
        "cells": result.cells,
        "us": result.us_per_token,
        "seeds": len(result.records),
    }
    for name in results.table.metrics:
        row[name] = result.estimate(name)
        row[f"{name} paper"] = _published(results, dataset, result, name)
    return row


def _row_not_run(
    results: TableResults, dataset: DatasetResults, method: str, notes: Footnotes
) -> dict[str, Value]:
    """A dash with its reason; what the paper printed stands beside it all the same."""
    row: dict[str, Value] = {"method": label_of(results, method, notes)}
    row |= dict.fromkeys(("cells", "us", "seeds"))
    printed = results.table.published.get(dataset.dataset, {}).get(method, {})
    for name in results.table.metrics:
        row[name] = no_figure(results, dataset, method, notes)
        row[f"{name} paper"] = printed.get(name)
    return row


def _published(
    results: TableResults, dataset: DatasetResults, result: Result, metric: str
) -> float | None:
    """The paper's figure; ``[published.DATASET] METHOD-CELLS`` says it for one memory size."""
    figures = results.table.published.get(dataset.dataset, {})
    sizes = sum(other.method == result.method for other in dataset.results)
    # A figure without a size cannot be set beside several.
    plain = figures.get(result.method, {}) if sizes == 1 else {}
    return figures.get(f"{result.method}-{result.cells}", plain).get(metric)


def _span(counts: Iterable[int | None]) -> str:
    known: Sequence[int] = sorted({count for count in counts if count is not None})
    if not known:
        return "unknown"
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"
