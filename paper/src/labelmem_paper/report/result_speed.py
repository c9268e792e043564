"""What each method costs: its size, its time for a token, and how that compares to LMN."""

from __future__ import annotations

from labelmem.render.tables import Column, Table, Value
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.result_cells import label_of
from labelmem_paper.report.results import TIMED, DatasetResults, Result, TableResults

__all__ = ["speed_of"]

MEASURE = "lmn"
"""The method whose time is 1."""


def speed_of(results: TableResults) -> Table | None:
    """Parameters and microseconds per token on the first data set; None where none was timed.

    Times of the test are of many streams in lockstep, and of a machine that may have done other
    work as well; runs that were made for their times (``TIMED``) come before them.
    """
    dataset = results.datasets[0]
    sources = {"lockstep": dataset, **results.timed}
    kinds = [(kind, title, sources[kind]) for kind, title in TIMED.items() if kind in sources]
    timed = {key: _timed(results, one) for key, _, one in kinds}
    methods = [m for m in results.compared if any(m in found for found in timed.values())]
    if not methods:
        return None
    columns = [Column("method", "method"), Column("parameters", "parameters", ",.0f")]
    notes = []
    for key, title, _ in kinds:
        columns.append(Column(key, f"{title}: µs per token", ",.1f"))
        if MEASURE in timed[key]:
            columns.append(Column(f"{key} times", f"times {results.label(MEASURE)}", ",.2f"))
        where = " and ".join(sorted({d for r in timed[key].values() for d in r.devices}))
        notes.append(f"{title.capitalize()} timed on {where}." if where else "")
    rows = []
    for method in methods:
        row: dict[str, Value] = {"method": label_of(results, method, Footnotes())}
        found = [timed[key][method] for key in timed if method in timed[key]]
        row["parameters"] = found[0].parameters
        for key in timed:
            result, measure = timed[key].get(method), timed[key].get(MEASURE)
            row[key] = None if result is None else result.us_per_token
            row[f"{key} times"] = _times(result, measure)
        rows.append(row)
    note = " ".join(filter(None, notes))
    return Table(columns, rows, f"Size and time on {dataset.dataset}.", note)


def _timed(results: TableResults, dataset: DatasetResults) -> dict[str, Result]:
    """The methods side by side that have a time, each with its largest memory."""
    compared = set(results.compared)
    return {r.method: r for r in dataset.largest() if r.method in compared and r.us_per_token > 0}


def _times(result: Result | None, measure: Result | None) -> Value:
    """How many times as long it takes; on another device that cannot be said."""
    if result is None or measure is None or result.devices != measure.devices:
        return None
    times = result.us_per_token / measure.us_per_token
    return f"{times:.2g}" if times < 10 else f"{times:,.0f}"
