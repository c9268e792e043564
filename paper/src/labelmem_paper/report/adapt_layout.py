"""What the tables of frozen classifiers have in common: forms of stream, rows, worst figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from labelmem.render.tables import Column, Estimate, Table, Value
from labelmem_paper.report.adapt_figures import TaskFigures, Worst
from labelmem_paper.report.footnotes import Footnotes
from labelmem_paper.report.result_cells import label_of

__all__ = ["HARMED", "LONG", "MEANING", "SHOWN", "named", "table_over", "told"]

SHOWN = {
    "new": "new.accuracy",
    "few-new": "few-new.accuracy",
    "few": "few.accuracy",
    "known": "known.accuracy",
    "swapped": "swapped.accuracy_late",
    "noisy": "noisy.accuracy",
}
"""What counts in each form of stream."""
MEANING = {
    "new": "known and new labels",
    "few-new": "users with up to 7 known and 3 new labels",
    "few": "users with up to 10 known labels",
    "known": "all known labels",
    "swapped": "half of the known labels change their meaning half-way, and the second half counts",
    "noisy": "as `new`, but a fifth of the revealed labels is wrong",
}
HARMED = ("new", "few-new", "few", "known", "noisy")
"""Where known labels keep their meaning, so that the model alone is a measure."""
LONG = ("new", "known", "noisy")
"""Forms with streams of more than 300 steps."""

Row = Callable[[str], Mapping[str, Value]]


def table_over(
    figures: TaskFigures,
    columns: Sequence[Column],
    row: Row,
    what: str,
    note: str,
    rows_too: bool = False,
) -> Table:
    """Rows for all methods; what must be known of them stands below where ``rows_too`` says so."""
    results, notes = figures.results, Footnotes()
    seeds = {method: figures.seeds(method) for method in results.compared}
    usual = max(seeds.values(), key=len)
    rows = []
    for method in results.compared:
        fewer = "" if seeds[method] == usual else f"Seeds: {_listed(seeds[method])}."
        title = label_of(results, method, notes) if rows_too else results.label(method)
        label = title + notes.mark(fewer)
        rows.append({"method": label, **row(method)})
    caption = f"{results.table.title}: {what}."
    below = [f"{note} Means over seeds: {_listed(usual)}.", *notes.texts]
    return Table([Column("method", "method"), *columns], rows, caption, "\n".join(below))


def named(figure: str, forms: Iterable[str]) -> list[str]:
    """A figure of several forms, as records name it."""
    return [f"{form}.{figure}" for form in forms]


def told(worst: Worst | None, form: bool) -> Value:
    """The figure with its task and, where it may be any, its form."""
    if worst is None:
        return None
    where = f"({worst.task}, {worst.form})" if form else f"({worst.task})"
    return Estimate(worst.value, beside=where if worst.value < 0 else "")


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds)) or "none"
