"""Recorded results on one page: an overview, each data set's table and plots, and the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec

from labelmem.render.page import Page
from labelmem_paper.experiments.records import Record
from labelmem_paper.report.adapt_tables import adapt_tables
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.picture_strips import add_strips
from labelmem_paper.report.result_ablation import ablation_of
from labelmem_paper.report.result_grid import grid_of, printed_of
from labelmem_paper.report.result_lead import lead_of
from labelmem_paper.report.result_markdown import ADAPT
from labelmem_paper.report.result_parts import parts_of
from labelmem_paper.report.result_plots import Drawing
from labelmem_paper.report.result_speed import speed_of
from labelmem_paper.report.result_tables import NOTE, table_of
from labelmem_paper.report.results import DatasetResults, TableResults

__all__ = ["page_of"]


def page_of(
    tables: Sequence[TableResults], drawings: Mapping[tuple[str, str], Sequence[Drawing]]
) -> Page:
    """Build the page.

    Parameters
    ----------
    drawings
        The plots of each table and data set.
    """
    records = [record for table in tables for one in table.datasets for record in one.records]
    page = Page("labelmem: recorded experiments", _lead(tables, records))
    page.text(
        NOTE, "In the table of one data set the paper's figure, if any, stands right of ours."
    )
    for table in tables:
        _overview(page, table)
        for dataset in table.datasets:
            _dataset(page, table, dataset, drawings.get((table.name, dataset.dataset), ()))
    _words(page, tables)
    page.section("How the runs were made")
    page.points(_provenance(records))
    return page


def _lead(tables: Sequence[TableResults], records: Sequence[Record]) -> str:
    runs = "1 run" if len(records) == 1 else f"{len(records)} runs"
    names = ", ".join(table.name for table in tables)
    lead = (
        f"{runs} of {names}. Every method predicts each label before it is revealed; what can be "
        "chosen was chosen on validation streams."
    )
    if (size := tables[0].size) != "paper":
        lead += f" Size {size}: these figures show that everything runs, and nothing else."
    return lead


def _overview(page: Page, table: TableResults) -> None:
    """All data sets at a glance, and the variants of a method."""
    if table.table.task == ADAPT:
        page.section(f"{table.name}: overview")
        for part in adapt_tables(table):
            for averaged in part:
                page.table(averaged, intervals=False)
        return
    if len(table.datasets) > 1 and not table.only_ablation:
        page.section(f"{table.name}: overview")
        for one in (grid_of(table), lead_of(table), printed_of(table), speed_of(table)):
            if one is not None:
                page.table(one, intervals=False)
    if ablation := ablation_of(table):
        page.section(f"{table.name}: ablation")
        page.table(ablation, intervals=False)


def _dataset(
    page: Page, table: TableResults, dataset: DatasetResults, drawings: Sequence[Drawing]
) -> None:
    page.section(f"{table.name}: {dataset.dataset}")
    page.table(table_of(table, dataset))
    for block, methods in table.blocks.items():
        if any(result.method in methods for result in dataset.results):
            page.table(table_of(table, dataset, block))
    if parts := parts_of(table, dataset):
        page.table(parts, intervals=False)
    command = escape(table.command(dataset.dataset))
    page.raw(f"<p>Made by <code>{command}</code></p>")
    if drawings:
        page.figures(*((one.svg, one.title, one.sees) for one in drawings))
    add_strips(page, dataset)


def _words(page: Page, tables: Sequence[TableResults]) -> None:
    """What the names of methods and metrics mean."""
    methods = {name: _about(table, name) for table in tables for name in table.methods}
    page.section("Methods")
    page.terms([(name, about) for name, about in methods.items() if about])
    metrics = dict.fromkeys(name for table in tables for name in table.table.metrics)
    page.section("Metrics")
    page.terms([(metric_of(name).title, metric_of(name).meaning) for name in metrics])


def _about(table: TableResults, method: str) -> str:
    """What the table or the method's own file says; empty for one that is not in the package."""
    row, base = table.table.row(method), table.variant_of(method)
    if base is not None:
        title = f": {row.title}" if row.title else ""
        return " ".join(filter(None, [f"A variant of {base}{title}.", row.note]))
    module = "labelmem_paper.experiments.sequences.methods." + method.replace("-", "_")
    if find_spec(module) is None:
        return ""
    return (import_module(module).__doc__ or "").strip().split("\n")[0]


def _provenance(records: Sequence[Record]) -> list[str]:
    def told(values: Sequence[str | None]) -> str:
        return ", ".join(sorted({value for value in values if value})) or "not recorded"

    hours = sum(float(record.get("seconds", 0)) for record in records) / 3600
    versions = [record.get("versions", {}) for record in records]
    libraries = sorted({library for version in versions for library in version})
    return [
        f"Devices: {told([record.get('device') for record in records])}.",
        f"Time of all runs together: {hours:.1f} hours.",
        f"Commits of the code: {told([record.get('commit') for record in records])}.",
        *(f"Versions of {one}: {told([v.get(one) for v in versions])}." for one in libraries),
    ]
