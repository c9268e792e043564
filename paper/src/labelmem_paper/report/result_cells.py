"""What the tables of results write into a cell, and why one may hold no figure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from labelmem.render.tables import NOTHING, Estimate
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.metric import metric_of
from labelmem_paper.report.results import DatasetResults, Result, TableResults

__all__ = ["MOST", "label_of", "no_figure", "others_of", "short", "width_of"]

MOST = 3
"""How many metrics a cell has room for."""


def short(value: float, spec: str) -> str:
    """A figure without the zero before its point: a wide table has no room for it.

    Examples
    --------
    >>> short(0.233, ".3f"), short(-0.05, "+.2f"), short(10.5, ".1f"), short(0.25, ".1%")
    ('.233', '-.05', '10.5', '25.0%')
    """
    text = f"{value:{spec}}"
    return text if "%" in text else re.sub(r"^([+-]?)0\.", r"\1.", text)


def width_of(estimate: Estimate, metric: str) -> str:
    """Half the width of its interval; nothing where it has none.

    Examples
    --------
    >>> width_of(Estimate(6.2, 6.1, 6.4), "log_perplexity")
    '±.15'
    """
    half = (estimate.high - estimate.low) / 2
    return "" if math.isnan(half) else f"±{short(half, metric_of(metric).format)}"


def others_of(result: Result, metrics: Sequence[str]) -> str:
    """The metrics beside the deciding one, in brackets."""
    beside = metrics[1:MOST]
    known = [(name, one) for name in beside if (one := result.estimate(name)) is not None]
    texts = [short(one.value, metric_of(name).format) for name, one in known]
    return f"({', '.join(texts)})" if texts else ""


def label_of(results: TableResults, method: str, notes: Footnotes, cells: int | None = None) -> str:
    """What a row is called: its title, the size of its memory, and the number of its note."""
    size = "" if cells is None else f", {cells:,} cells"
    return results.label(method) + size + notes.mark(results.table.row(method).note)


def no_figure(results: TableResults, dataset: DatasetResults, method: str, notes: Footnotes) -> str:
    """A dash, with its reason where the table gives one."""
    reason = results.table.not_run.get(dataset.dataset, {}).get(method, "")
    return NOTHING + notes.mark(reason)
