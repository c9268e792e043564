"""Recorded results in Markdown: what matters most for a README, the rest, or every figure."""

from __future__ import annotations

from typing import Literal

from labelmem.errors import ConfigError
from labelmem.render.tables import Table, to_markdown
from labelmem_paper.report.adapt_summary import adapt_summary
from labelmem_paper.report.adapt_tables import adapt_tables
from labelmem_paper.report.result_ablation import ablation_of
from labelmem_paper.report.result_grid import grid_of, printed_of
from labelmem_paper.report.result_lead import lead_of
from labelmem_paper.report.result_parts import parts_of
from labelmem_paper.report.result_speed import speed_of
from labelmem_paper.report.result_tables import NOTE, caption_of, notes_of, table_of
from labelmem_paper.report.results import DatasetResults, TableResults

__all__ = ["ADAPT", "Part", "full_markdown_of", "markdown_of"]

ADAPT = "adapt"
"""The kind of tables whose data sets are tasks: they are averaged, and have tables of their own."""

Part = Literal["all", "main", "more", "summary"]


def markdown_of(results: TableResults, part: Part = "all") -> str:
    """A table in Markdown.

    Parameters
    ----------
    part
        ``main``: methods by data sets and the paper's figures, or the first table where there is
        one data set. ``more``: leads, costs, variants, other blocks, and how the runs were made.
        ``summary``: one table with a row for each method, which only some tables have.
    """
    if part == "summary":
        return _with_words(_summary(results))
    main, more = _parts(results)
    tables = {"main": main, "more": more, "all": [*main, *more]}[part]
    texts = [_with_words(table) for table in tables if table is not None]
    if part != "main":
        texts.append(_made_from(results))
    if part == "all":  # a page of several parts says it once
        texts.append(NOTE)
    return "\n\n".join(texts)


Tables = list[Table | None]


def _parts(results: TableResults) -> tuple[Tables, Tables]:
    if results.table.task == ADAPT:
        main, more = adapt_tables(results)
        return [*main], [*more]
    one = len(results.table.datasets) == 1 and not results.only_ablation
    return _of_one(results) if one else _of_several(results)


def _summary(results: TableResults) -> Table:
    if results.table.task != ADAPT:
        raise ConfigError(f"{results.name} has no summary; its parts are main and more")
    return adapt_summary(results)


def _of_several(results: TableResults) -> tuple[Tables, Tables]:
    main: Tables = []
    more: Tables = []
    if not results.only_ablation:
        times = [parts_of(results, one) for one in results.datasets]
        # Times in parts say more than sums.
        times = times if any(times) else [speed_of(results)]
        main = [grid_of(results), printed_of(results)]
        more = [lead_of(results), *times]
    more.append(ablation_of(results))
    return main, more + [table for one in results.datasets for table in _blocks(results, one)]


def _of_one(results: TableResults) -> tuple[Tables, Tables]:
    """A table of one data set has room for all its metrics."""
    (dataset,) = results.datasets
    return [table_of(results, dataset)], [*_blocks(results, dataset), ablation_of(results)]


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
