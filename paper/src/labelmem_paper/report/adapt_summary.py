"""Frozen classifiers in one table: a row for each method, means over tasks and what is worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labelmem.render.tables import Column, Table, Value
from labelmem_paper.report.adapt_figures import TaskFigures
from labelmem_paper.report.adapt_layout import (
    HARMED,
    LONG,
    MEANING,
    SHOWN,
    named,
    table_over,
    told,
)
from labelmem_paper.report.results import TableResults

__all__ = ["adapt_summary", "summary_over"]


def adapt_summary(results: TableResults) -> Table:
    """One row for each method: means over the tasks that are not kept apart."""
    figures = TaskFigures(results)
    return summary_over(figures, figures.tasks, "means over tasks")


def summary_over(figures: TaskFigures, tasks: Sequence[str], what: str) -> Table:
    """The same over any of the tasks."""
    columns = [Column(form, form, ".1%", best="high") for form in SHOWN]
    columns += [
        Column("loss", "log-loss", ".2f", best="low"),
        Column("harm", "worst on known labels", "+.1%"),
        Column("first", "worst in 300 steps", "+.1%"),
        Column("ms", "ms per step", ".2f"),
    ]

    def row(method: str) -> Mapping[str, Value]:
        return {
            **{form: figures.mean(method, [metric], tasks) for form, metric in SHOWN.items()},
            "loss": figures.mean(method, named("log_loss", SHOWN), tasks),
            "harm": told(figures.worst(method, named("gain_known", HARMED), tasks), form=True),
            "first": told(figures.worst(method, named("gain_known_300", LONG), tasks), form=True),
            "ms": figures.mean(method, named("ms", SHOWN), tasks),
        }

    forms = "; ".join(f"`{form}`: {meaning}" for form, meaning in MEANING.items())
    note = (
        f"Accuracy; every label is predicted before it is revealed. {forms}. Log-loss: mean of "
        "-log P(true label) in nats, P not below 1e-10, over all forms. Worst on known labels: "
        "accuracy minus that of the model alone, in the worst task and form but `swapped`; the "
        f"same within the first 300 steps. Tasks: {', '.join(tasks)}."
    )
    return table_over(figures, columns, row, what, note, rows_too=True)
