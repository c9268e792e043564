"""Recorded results in Markdown: short for a README, or with every figure."""

from __future__ import annotations

from labelmem.report.result_ablation import ablation_of
from labelmem.report.result_grid import grid_of, printed_of
from labelmem.report.result_lead import lead_of
from labelmem.report.result_parts import parts_of
from labelmem.report.result_speed import speed_of
from labelmem.report.result_tables import NOTE, caption_of, notes_of, table_of
from labelmem.report.results import DatasetResults, TableResults
from labelmem.report.tables import Table, to_markdown

__all__ = ["full_markdown_of", "markdown_of"]


def markdown_of(results: TableResults) -> str:
    """A table for a README: methods by data sets, the paper's figures, costs, and variants."""
    if len(results.table.datasets) == 1 and not results.only_ablation:
        return _of_one(results, results.datasets[0])
    tables: list[Table | None] = []
    if not results.only_ablation:
        times = [parts_of(results, one) for one in results.datasets]
        # Times in parts say more than sums.
        times = times if any(times) else [speed_of(results)]
        tables += [grid_of(results), lead_of(results), printed_of(results), *times]
    tables.append(ablation_of(results))
    parts = [_with_words(table) for table in tables if table is not None]
    parts += [_with_words(table) for one in results.datasets for table in _blocks(results, one)]
    return "\n\n".join([*parts, _made_from(results), NOTE])


def _of_one(results: TableResults, dataset: DatasetResults) -> str:
    """A table of one data set has room for all its metrics."""
    tables = [table_of(results, dataset), *_blocks(results, dataset), ablation_of(results)]
    parts = [_with_words(table) for table in tables if table is not None]
    return "\n\n".join([*parts, _made_from(results), NOTE])


def _blocks(results: TableResults, dataset: DatasetResults) -> list[Table]:
    """The other parts of the table that have a record on this data set."""
    recorded = {result.method for result in dataset.results}
    return [
        table_of(results, dataset, block)
        for block, methods in results.blocks.items()
        if recorded.intersection(methods)
    ]


def full_markdown_of(results: TableResults) -> str:
    """The same, and the methods on each data set with all their figures and intervals."""
    parts = [markdown_of(results)]
    parts += [_with_words(table_of(results, one), intervals=True) for one in results.datasets]
    return "\n\n".join(parts)


def _with_words(table: Table, intervals: bool = False) -> str:
    """A table below its caption, and below it what must be known to read it."""
    parts = [f"**{table.caption}**", to_markdown(table, intervals)]
    remarks = table.note.split("\n") if table.note else []
    if len(remarks) > 1:
        remarks = ["\n".join(f"- {remark}" for remark in remarks)]
    parts += remarks
    return "\n\n".join(parts)


def _made_from(results: TableResults) -> str:
    """Which data each column is made from, and how."""
    lines = ["**The runs.**", ""]
    for one in results.datasets:
        title, extent = caption_of(one)
        told = [f"`{one.dataset}`, {title}: {extent}", *notes_of(one)]
        lines.append(f"- {' '.join(told)} Made by `{results.command(one.dataset)}`.")
    return "\n".join(lines)
