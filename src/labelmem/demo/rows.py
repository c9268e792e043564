"""The demo's figures as a table and as plain data."""

from __future__ import annotations

import math
from typing import Any

from labelmem.demo.run import MethodResult, TaskResult
from labelmem.render.tables import Column, Estimate, Table, Value

__all__ = ["as_plain", "table_of"]

COLUMNS = (
    Column("method", "Method"),
    Column("accuracy_new", "Accuracy, new labels", ".1%", best="high", short="new labels"),
    Column("accuracy_seen", "Accuracy, seen labels", ".1%", best="high", short="seen labels"),
    Column("accuracy", "Accuracy, all labels", ".1%", best="high", short="all labels"),
    Column("log_perplexity", "Log-perplexity", ".3f", best="low", short="log-ppl"),
    Column("mrr", "MRR", ".3f", best="high"),
    Column("us_per_step", "µs per step", ".0f"),
)
"""Accuracies first: they need no explanation."""


def table_of(done: TaskResult) -> Table:
    """One row for each method, with intervals."""
    some = done.methods[0].result
    return Table(
        COLUMNS,
        [_row(method) for method in done.methods],
        caption=f"{done.task.title}: {some.streams} test users, {some.tokens:,} predictions",
        note=(
            "Each label is predicted before it is revealed. Seen labels are those the model was "
            "trained on. Log-perplexity is in nats, lower is better; MRR is the mean of one over "
            "the rank of the true label. In bold the best of each column, below it the 95% "
            "interval over users. Time is for predicting and learning together, all users side by "
            "side on one processor core."
        ),
    )


def _row(method: MethodResult) -> dict[str, Value]:
    figures, bounds = method.result.metrics, method.result.interval
    row: dict[str, Value] = {"method": method.title, "us_per_step": method.us_per_step}
    for column in COLUMNS[1:-1]:
        low, high = bounds[column.key]
        row[column.key] = Estimate(figures[column.key], low, high)
    return row


def as_plain(done: TaskResult) -> dict[str, Any]:
    """Everything that was measured and chosen, as JSON can hold it."""
    some = done.methods[0].result
    return {
        "task": done.task.name,
        "users": some.streams,
        "predictions": some.tokens,
        "methods": [
            {
                "name": method.name,
                "settings": method.settings,
                "metrics": {n: _number(value) for n, value in method.result.metrics.items()},
                "interval": {
                    n: [_number(bound) for bound in bounds]
                    for n, bounds in method.result.interval.items()
                },
                "us_per_step": method.us_per_step,
            }
            for method in done.methods
        ],
    }


def _number(value: float) -> float | None:
    """JSON has no nan: what could not be measured is null."""
    return value if math.isfinite(value) else None
