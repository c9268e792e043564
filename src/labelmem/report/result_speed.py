"""What each method costs: its size, its time for a token, and how that compares to LMN."""

from __future__ import annotations

from labelmem.report.footnotes import Footnotes
from labelmem.report.result_cells import label_of
from labelmem.report.results import Result, TableResults
from labelmem.report.tables import Column, Table, Value

__all__ = ["speed_of"]

MEASURE = "lmn"
"""The method whose time is 1."""


def speed_of(results: TableResults) -> Table | None:
    """Parameters and microseconds per token on the first data set; None where none was timed."""
    dataset = results.datasets[0]
    compared = results.compared
    timed = [r for r in dataset.largest() if r.method in compared and r.us_per_token > 0]
    if not timed:
        return None
    measure = next((result for result in timed if result.method == MEASURE), None)
    columns = [
        Column("method", "method"),
        Column("parameters", "parameters", ",.0f"),
        Column("us", "µs per token", ",.1f"),
    ]
    if measure is not None:
        columns.append(Column("times", f"times {results.label(MEASURE)}", ",.2f"))
    rows: list[dict[str, Value]] = [
        {
            "method": label_of(results, result.method, Footnotes(), result.cells),
            "parameters": result.parameters,
            "us": result.us_per_token,
            "times": None if measure is None else _times(result, measure),
        }
        for result in timed
    ]
    where = " and ".join(sorted({device for result in timed for device in result.devices}))
    note = f"Timed on {where}." if where else ""
    return Table(columns, rows, f"Size and time on {dataset.dataset}.", note)


def _times(result: Result, measure: Result) -> Value:
    """How many times as long it takes; on another device that cannot be said."""
    if result.devices != measure.devices:
        return None
    times = result.us_per_token / measure.us_per_token
    return f"{times:.2g}" if times < 10 else f"{times:,.0f}"
