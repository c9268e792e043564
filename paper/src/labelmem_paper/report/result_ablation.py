"""Variants of a method side by side, and what each of them changes."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from labelmem.render.tables import Column, Table, Value
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.result_cells import label_of, no_figure, others_of, short
from labelmem_paper.report.result_grid import cells_meaning, column_of
from labelmem_paper.report.results import Result, TableResults

__all__ = ["ablation_of"]

UNSURE = "≈"
"""The mark of a difference whose sign changes with the seed."""


def ablation_of(results: TableResults) -> Table | None:
    """The variants of a table as rows, the data sets as columns; None where there are none."""
    methods = results.ablation
    if len(methods) < 2:
        return None
    notes = Footnotes()
    metric = metric_of(results.table.metrics[0])
    # A data set on which no variant ran has nothing to say here.
    datasets = [
        one
        for one in results.datasets
        if any(result.method in methods and result.variant_of for result in one.results)
    ]
    columns = [Column("method", "variant")]
    columns += [replace(column_of(one, metric.format), best=metric.best) for one in datasets]
    rows = []
    for method in methods:
        row: dict[str, Value] = {"method": label_of(results, method, notes)}
        for one in datasets:
            shown = {result.method: result for result in one.largest()}
            result, first = shown.get(method), shown.get(methods[0])
            row[one.dataset] = (
                no_figure(results, one, method, notes)
                if result is None
                else _figure(results, result, None if first is result else first)
            )
        rows.append(row)
    first_row = results.label(methods[0])
    meaning = (
        f"{cells_meaning(results, '')} Behind them: the difference to {first_row}, over the seeds "
        f"that both have; {UNSURE} where the seeds do not agree on its sign."
    )
    caption = f"{results.table.title}: variants of {first_row}."
    return Table(columns, rows, caption, "\n".join([meaning, *notes.texts]))


def _figure(results: TableResults, result: Result, first: Result | None) -> Value:
    metrics = results.table.metrics
    estimate = result.estimate(metrics[0])
    if estimate is None:
        return None
    beside = [others_of(result, metrics)]
    if first is not None:
        beside.append(_difference(result, first, metrics[0]))
    return replace(estimate, beside=" ".join(filter(None, beside)))


def _difference(result: Result, first: Result, metric: str) -> str:
    """How much more it has than the first; seeds have streams of their own, so only within them."""
    ours, theirs = (
        {r["seed"]: float(r["metrics"][metric]) for r in one.records if metric in r["metrics"]}
        for one in (result, first)
    )
    steps = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
    if not steps:
        return ""
    unsure = UNSURE if min(steps) < 0 < max(steps) else ""
    return unsure + short(fmean(steps), f"+{metric_of(metric).format}")
