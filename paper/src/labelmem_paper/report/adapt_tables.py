"""The tables of frozen classifiers: a summary, what adapting broke, and every form of stream."""

from __future__ import annotations

from collections.abc import Mapping

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
from labelmem_paper.report.adapt_summary import adapt_summary, summary_over
from labelmem_paper.report.results import TableResults

__all__ = ["adapt_tables"]


def adapt_tables(results: TableResults) -> tuple[list[Table], list[Table]]:
    """What matters most, and the rest."""
    figures = TaskFigures(results)
    main = [adapt_summary(results)]
    if figures.apart:
        main.append(summary_over(figures, figures.apart, "the tasks that were left out"))
    more = [_form(figures, form) for form in SHOWN if _tasks_with(figures, form)]
    return [*main, _harm(figures)], [*more, _losses(figures)]


def _harm(figures: TaskFigures) -> Table:
    """Known labels against the model alone: the worst task of each form."""
    asked = {form: (named("gain_known", [form]), figures.tasks) for form in HARMED}
    for form in LONG:
        asked[f"{form}, 300 steps"] = named("gain_known_300", [form]), figures.tasks
    if figures.apart:
        asked["left out"] = named("gain_known", HARMED), figures.apart
        asked["left out, 300 steps"] = named("gain_known_300", LONG), figures.apart

    def row(method: str) -> Mapping[str, Value]:
        return {
            title: told(figures.worst(method, metrics, tasks), form=len(metrics) > 1)
            for title, (metrics, tasks) in asked.items()
        }

    note = (
        "Accuracy on known labels minus that of the model alone on the same steps, in the task "
        "where it is worst; then the same within the first 300 steps of a stream. Left out: the "
        "tasks that were left out, in the worst form."
    )
    columns = [Column(title, title, "+.1%") for title in asked]
    return table_over(figures, columns, row, "what known labels lose", note)


def _form(figures: TaskFigures, form: str) -> Table:
    """Every method on every task."""
    metric, having = SHOWN[form], _tasks_with(figures, form)

    def column(task: str) -> Column:
        title = f"{task} (left out)" if task in figures.apart else task
        return Column(task, title, ".1%", best="high", close=True)

    def row(method: str) -> Mapping[str, Value]:
        found: dict[str, Value] = {task: figures.of(method, task, metric) for task in having}
        return {**found, "mean": figures.mean(method, [metric], figures.tasks)}

    columns = [column(task) for task in having if task in figures.tasks]
    columns.append(Column("mean", "mean", ".1%", best="high"))
    columns += [column(task) for task in having if task in figures.apart]
    note = f"Accuracy; `{form}`: {MEANING[form]}."
    return table_over(figures, columns, row, f"`{form}` streams", note)


def _losses(figures: TaskFigures) -> Table:
    def row(method: str) -> Mapping[str, Value]:
        return {
            form: figures.mean(method, named("log_loss", [form]), figures.tasks) for form in SHOWN
        }

    columns = [Column(form, form, ".2f", best="low") for form in SHOWN]
    note = "A label that has no probability at all, as on its first showing, costs 23 nats."
    return table_over(figures, columns, row, "log-loss, means over tasks", note)


def _tasks_with(figures: TaskFigures, form: str) -> list[str]:
    """The tasks that have a form of stream."""
    return [task for task in (*figures.tasks, *figures.apart) if figures.has(task, SHOWN[form])]
