"""What the demo found: a table, sentences made from the figures, one page, and plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from labelmem import __version__
from labelmem.demo.run import Explained, TaskResult
from labelmem.render.page import Page
from labelmem.render.palette import METHODS
from labelmem.render.plots import Axis, Series, lines, to_svg
from labelmem.render.svg import pixels
from labelmem.render.tables import Column, Estimate, Table, Value

__all__ = ["METHOD_NAMES", "as_plain", "page_of", "table_of", "verdict"]

METHOD_NAMES = {
    "static": ("not adapted", "The trained model as it is. It can never name a new label."),
    "counter": (
        "per-user counter",
        "How often and how lately the user visited each venue, mixed with what is popular.",
    ),
    "ncm": (
        "nearest class mean",
        "The label whose average hidden vector is closest to the input's.",
    ),
    "sgd-head": (
        "last-layer SGD",
        "One step of gradient descent on the model's last layer for each revealed label; a new "
        "label gets a new row.",
    ),
    "lmn-fixed": ("LMN-fixed", "The model and a labeled memory, mixed with a fixed weight."),
    "lmn": (
        "LMN",
        "The same memory, with a small recurrent network that decides at each step how far the "
        "memory is trusted. It is trained on the validation users.",
    ),
}
"""What each method is called, and what it does."""

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
    rows: list[dict[str, Value]] = []
    for name, method in done.methods.items():
        figures, bounds = method.result.metrics, method.result.interval
        shown = {c.key: Estimate(figures[c.key], *bounds[c.key]) for c in COLUMNS[1:-1]}
        rows.append({"method": METHOD_NAMES[name][0], "us_per_step": method.us_per_step, **shown})
    some = method.result
    title = done.task.name.capitalize()
    return Table(COLUMNS, rows, f"{title}: {some.streams} test users, {some.tokens:,} predictions")


def verdict(done: TaskResult) -> list[str]:
    """LMN against the model alone, and against the best of the others."""
    lmn, static = done.methods["lmn"].result, done.methods["static"].result
    said = []
    for word in ("new", "seen"):
        key = f"accuracy_{word}"
        low, high = lmn.interval[key]
        said.append(
            f"On {word} labels LMN is right {lmn.metrics[key]:.1%} of the time (95% interval "
            f"{low:.1%} to {high:.1%}), the model alone {static.metrics[key]:.1%}."
        )
    for key, title, sign in (("log_perplexity", "log-perplexity", -1), ("mrr", "MRR", 1)):
        scores = {name: method.result.metrics[key] for name, method in done.methods.items()}
        ours = scores.pop("lmn")
        best = max(scores, key=lambda name: sign * scores[name])
        ahead = "ahead of" if sign * ours > sign * scores[best] else "behind or level with"
        said.append(
            f"In {title} LMN is {ahead} the best of the others, {METHOD_NAMES[best][0]}: "
            f"{ours:.3f} against {scores[best]:.3f}."
        )
    return said


def page_of(results: Sequence[TaskResult], seed: int, quick: bool) -> Page:
    """Tables, plots and sentences of all tasks."""
    page = Page(
        "A classifier that keeps learning",
        "labelmem puts a small labeled memory beside a trained model. The model is never "
        "retrained; each label a user reveals is remembered and used from the next step on.",
    )
    if quick:
        page.text("This was a quick run on very little data. Its figures mean nothing.")
    for done in results:
        page.section(done.task.name.capitalize())
        page.text(*done.task.story)
        page.table(table_of(done))
        page.points(verdict(done))
        page.figures((_plot(done), "Accuracy along the stream.", "All labels, new ones included."))
        if done.explained is not None:
            _explain(page, done.explained)
    page.section("How it was measured")
    page.text(
        "Each label is predicted before it is revealed. Seen labels are those the model was "
        "trained on. A new label's first appearance has probability zero for every method; in the "
        "log-perplexity (in nats, lower is better) it counts as 1e-10. MRR is the mean of one over "
        "the rank of the true label. In bold the best of each column, below it the 95% interval "
        "over users. Time is for predicting and learning together, all users side by side on one "
        "processor core. Settings are chosen on validation users by log-perplexity, with at most "
        "the same number of trials for every method; the test users are scored once."
    )
    page.terms(tuple(METHOD_NAMES.values()))
    page.text(f"Made by labelmem {__version__} with seed {seed}.")
    return page


def as_plain(done: TaskResult) -> dict[str, Any]:
    """Everything that was measured and chosen, as JSON can hold it."""
    methods = []
    for name, method in done.methods.items():
        some = method.result
        interval = {
            key: [_number(low), _number(high)] for key, (low, high) in some.interval.items()
        }
        methods.append(
            {
                "name": name,
                "settings": method.settings,
                "metrics": {key: _number(value) for key, value in some.metrics.items()},
                "interval": interval,
                "us_per_step": method.us_per_step,
            }
        )
    name = done.task.name
    return {"task": name, "users": some.streams, "predictions": some.tokens, "methods": methods}


def _number(value: float) -> float | None:
    """JSON has no nan: what could not be measured is null."""
    return value if math.isfinite(value) else None


def _plot(done: TaskResult) -> str:
    x, y = Axis("Position in the stream", log=True), Axis("Accuracy", percent=True)
    series = []
    for name, method in done.methods.items():
        middles = [(part.start + 1 + part.stop) / 2 for part in method.curve]
        heights = [part.accuracy for part in method.curve]
        look = METHODS[name]
        series.append(Series(METHOD_NAMES[name][0], middles, heights, look, strong=name == "lmn"))
    return to_svg(lines(series, x, y))


def _explain(page: Page, seen: Explained) -> None:
    """One prediction, taken apart."""
    why, model = seen.explanation, seen.prediction.model_probs
    assert model is not None
    right = "which is right" if why.label == seen.truth else f"but it was {seen.truth}"
    page.heading("One prediction, explained")
    page.text(
        f"Step {seen.step} of one test user. The model alone would say {int(model.argmax())} "
        f"({float(model.max()):.0%}). LMN says {why.label} with {why.probability:.0%}, {right}: "
        f"{why.memory_share:.0%} of that comes from the memory, {why.model_share:.0%} from the "
        "model."
    )
    page.raw(pixels(seen.picture, "the input"))
    columns = (
        Column("label", "Cell of label"),
        Column("share", "Share of the memory's score", ".1%"),
        Column("alpha", "Weight alpha", ".2f"),
    )
    cells: list[dict[str, Value]]
    cells = [{"label": str(cell.label), "share": cell.share, "alpha": cell.alpha} for cell in why]
    note = "Alpha counts, with some decay, how often the cell was written."
    page.table(Table(columns, cells, "The cells behind it, the largest share first.", note))
