"""Recorded results as tables: ours beside the paper's, and what must be known to read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labelmem.data.registry import info, names
from labelmem.report.metric import metric_of
from labelmem.report.results import DatasetResults, Result, TableResults
from labelmem.report.tables import Column, Table, Value, to_markdown

__all__ = ["NOTE", "caption_of", "markdown_of", "notes_of", "overview_of", "table_of"]

NOTE = (
    "Figures are means over the seeds. Beside them is the 95 % bootstrap interval over streams; "
    "its bounds are averaged over the seeds and not narrowed, because the test streams of "
    "different seeds overlap. The best of our figures in each column is bold; the paper's figure, "
    "where there is one, stands right of ours."
)


def table_of(results: TableResults, dataset: DatasetResults) -> Table:
    """The methods on one data set: every metric of the table, the paper's figures beside ours."""
    published = results.table.published.get(dataset.dataset, {})
    columns = [Column("method", "method")]
    if any(result.cells is not None for result in dataset.results):
        columns.append(Column("cells", "cells", ",.0f"))
    for name in results.table.metrics:
        metric = metric_of(name)
        columns.append(Column(name, metric.title, metric.format, metric.best))
        if any(name in figures for figures in published.values()):
            columns.append(Column(f"{name} paper", "paper", metric.printed))
    columns += [Column("us", "µs per token", ",.1f"), Column("seeds", "seeds", ".0f")]
    rows = [_row(results, dataset, result) for result in dataset.results]
    title, extent = caption_of(dataset)
    caption = f"{results.table.title}: {title} ({dataset.dataset})."
    return Table(columns, rows, caption, " ".join([extent, *notes_of(dataset)]))


def overview_of(results: TableResults) -> Table:
    """The deciding metric of every method on every data set."""
    metric = metric_of(results.table.metrics[0])
    columns = [Column("method", "method")]
    rows: dict[tuple[str, int | None], dict[str, Value]] = {}
    for one in results.datasets:
        mark = " (subset)" if one.subset else ""
        columns.append(Column(one.dataset, one.dataset + mark, metric.format, metric.best))
        for result in one.results:
            row = rows.setdefault((result.method, result.cells), {"method": label_of(result)})
            row[one.dataset] = result.estimate(results.table.metrics[0])
    full = [{column.key: row.get(column.key) for column in columns} for row in rows.values()]
    return Table(columns, full, f"{results.table.title}: {metric.title} of every method.")


def label_of(result: Result) -> str:
    """The method, with the size of its memory where it has one."""
    return result.method if result.cells is None else f"{result.method}, {result.cells:,} cells"


def caption_of(dataset: DatasetResults) -> tuple[str, str]:
    """Which data set, and how much of it was predicted."""
    name = dataset.dataset
    title = info(name).title if name in names() else name
    streams = _span(record.get("streams") for record in dataset.records)
    tokens = _span(record.get("tokens") for record in dataset.records)
    return title, f"{streams} test streams and {tokens} tokens for each seed."


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
    # Sorted, so that the same records always give the same text.
    if devices := sorted({r["device"] for r in dataset.records if r.get("device")}):
        notes.append(f"Timed on {' and '.join(devices)}.")
    return notes


def markdown_of(results: TableResults) -> str:
    """All tables of a table in Markdown, each with the command that makes it."""
    parts = []
    if len(results.datasets) > 1:
        overview = overview_of(results)
        parts += [f"**{overview.caption}**", to_markdown(overview, intervals=False)]
    for dataset in results.datasets:
        title, extent = caption_of(dataset)
        parts.append(f"**{title}** (`{dataset.dataset}`): {' '.join([extent, *notes_of(dataset)])}")
        parts.append(to_markdown(table_of(results, dataset)))
        parts.append(f"Made by `{results.command(dataset.dataset)}`.")
    return "\n\n".join([*parts, NOTE])


def _row(results: TableResults, dataset: DatasetResults, result: Result) -> dict[str, Value]:
    row: dict[str, Value] = {
        "method": result.method,
        "cells": result.cells,
        "us": result.us_per_token,
        "seeds": len(result.records),
    }
    for name in results.table.metrics:
        row[name] = result.estimate(name)
        row[f"{name} paper"] = _published(results, dataset, result, name)
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
