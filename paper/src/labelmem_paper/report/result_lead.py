"""How far LMN is ahead of every other method on the same streams."""

from __future__ import annotations

from collections.abc import Sequence

from labelmem.render.tables import CLOSE, NOTHING, Column, Table, Value
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.pairing import Difference, difference
from labelmem_paper.report.result_cells import label_of, short
from labelmem_paper.report.results import Result, TableResults

__all__ = ["lead_of"]

AHEAD = "lmn"
"""The method that every other is compared with."""


def lead_of(results: TableResults) -> Table | None:
    """Every method's difference to LMN with a paired interval; None where no record allows it."""
    kept = {name for one in results.datasets for r in one.records for name in r.get("blocks", {})}
    metrics = [name for name in results.table.metrics if name in kept][:2]
    if not metrics:
        return None
    columns = [Column("method", f"{results.label(AHEAD)} against")]
    columns += [Column(one.dataset, one.dataset, "s") for one in results.datasets]
    rows = []
    for method in results.compared:
        cells: dict[str, Value] = {}
        for one in results.datasets:
            by_name = {result.method: result for result in one.largest()}
            ours, theirs = by_name.get(AHEAD), by_name.get(method)
            leads = [_lead(ours, theirs, metric) for metric in metrics]
            cells[one.dataset] = _cell(leads, metrics)
        if method != AHEAD and set(cells.values()) != {NOTHING}:
            rows.append({"method": label_of(results, method, Footnotes()), **cells})
    if not rows:
        return None
    first, *others = (metric_of(name).title for name in metrics)
    beside = f" ({', '.join(others)})" if others else ""
    meaning = (
        f"In each cell: how much better {results.label(AHEAD)} is in {first}, ± half of the 95 % "
        f"interval of the difference by paired bootstrap over blocks of streams{beside}; {CLOSE} "
        "where 0 lies in an interval."
    )
    return Table(columns, rows, f"How far {results.label(AHEAD)} is ahead.", meaning)


def _lead(ours: Result | None, theirs: Result | None, metric: str) -> Difference | None:
    """How much better ours is, whichever end of the metric is good."""
    pair = [None if one is None else one.estimate(metric) for one in (ours, theirs)]
    a, b = (None if estimate is None else estimate.blocks for estimate in pair)
    return difference(b, a) if metric_of(metric).best == "low" else difference(a, b)


def _cell(leads: list[Difference | None], metrics: Sequence[str]) -> str:
    texts: list[str] = []
    for name, lead in zip(metrics, leads, strict=False):
        if lead is not None:
            spec = metric_of(name).format
            half = "" if texts else f" ±{short((lead.high - lead.low) / 2, spec)}"
            mark = CLOSE if lead.low <= 0 <= lead.high else ""
            texts.append(f"{short(lead.value, '+' + spec)}{mark}{half}")
    first, *others = texts or [NOTHING]
    return first + (f" ({', '.join(others)})" if others else "")
