"""Where the time of a token goes: the model, the memory, and the model's softmax beside them."""

from __future__ import annotations

from statistics import fmean

from labelmem.render.tables import Column, Table, Value
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.result_cells import label_of
from labelmem_paper.report.result_tables import timed_on
from labelmem_paper.report.results import DatasetResults, Result, TableResults

__all__ = ["parts_of"]

PARTS = {"us_model": "model", "us_memory": "memory", "us_softmax": "softmax of one word"}
"""Fields of a record, and what a table calls them."""


def parts_of(results: TableResults, dataset: DatasetResults) -> Table | None:
    """The methods side by side with their times in parts; None where no record has parts."""
    shown = [r for r in dataset.results if r.method in results.compared and r.us_per_token > 0]
    if not any("us_memory" in record for result in shown for record in result.records):
        return None
    metric, notes = metric_of(results.table.metrics[0]), Footnotes()
    columns = [
        Column("method", "method"),
        Column("metric", metric.title, metric.format, metric.best),
        Column("us", "µs per token", ",.1f"),
        *(Column(name, title, ",.1f") for name, title in PARTS.items()),
        Column("share", "memory / softmax", ",.2f"),
    ]
    rows = [_row(results, result, notes) for result in shown]
    note = (
        "Model and memory read a piece of the text at a time, and share the time of a token; "
        "methods that cannot tell them apart have only the sum. The softmax over all words is "
        f"timed one word at a time, as somebody meets it who predicts online. {timed_on(dataset)}"
    )
    caption = f"Where the time goes: {dataset.dataset}."
    return Table(columns, rows, caption, "\n".join([note, *notes.texts]))


def _row(results: TableResults, result: Result, notes: Footnotes) -> dict[str, Value]:
    parts = {name: _mean(result, name) for name in PARTS}
    memory, softmax = parts["us_memory"], parts["us_softmax"]
    return {
        "method": label_of(results, result.method, notes, result.cells),
        "metric": result.estimate(results.table.metrics[0]),
        "us": result.us_per_token,
        **parts,
        # The model alone has no memory whose time could be compared.
        "share": memory / softmax if memory and softmax else None,
    }


def _mean(result: Result, name: str) -> float | None:
    """A time of a token in microseconds, averaged over seeds."""
    times = [float(record[name]) for record in result.records if name in record]
    return fmean(times) if times else None
