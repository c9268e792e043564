"""The demo's report as one page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labelmem import __version__
from labelmem.demo import sentences as say
from labelmem.demo.curves import Curve, by_meeting, by_position
from labelmem.demo.explained import Explained
from labelmem.demo.rows import table_of
from labelmem.demo.run import TITLES, TaskResult
from labelmem.demo.trace import Trace
from labelmem.render.page import Page
from labelmem.render.palette import METHODS
from labelmem.render.plots import Axis, Series, lines, to_svg
from labelmem.render.svg import pixels
from labelmem.render.tables import Column, Table

__all__ = ["page_of"]


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
        _task(page, done)
    page.section("How it was measured")
    page.terms(_MEANINGS)
    page.heading("What was chosen on the validation users")
    for done in results:
        page.points(_settings(done))
    page.text(f"Made by labelmem {__version__} with seed {seed}.")
    return page


def _task(page: Page, done: TaskResult) -> None:
    page.section(done.task.title)
    page.text(*done.task.story)
    page.table(table_of(done))
    page.points(say.verdict(done))
    along, meetings = _curves(done, by_position), _curves(done, by_meeting)
    page.figures(
        (
            _drawn(along, "Position in the stream", "Accuracy"),
            "Accuracy along the stream.",
            say.along_the_stream(along["lmn"], along["static"]),
        ),
        (
            _drawn(meetings, "Examples of the label shown before", "Accuracy on new labels"),
            "What each example of a new label is worth.",
            say.by_meeting_sees(meetings["lmn"]),
        ),
    )
    if done.explained is not None:
        page.heading("One prediction, explained")
        page.text(say.explained_sees(done.explained))
        page.raw(pixels(done.explained.picture, "the input"))
        page.table(_cells(done.explained))


def _curves(done: TaskResult, of: Callable[[Trace], Curve]) -> dict[str, Curve]:
    return {method.name: of(method.trace) for method in done.methods}


def _drawn(curves: Mapping[str, Curve], x: str, y: str) -> str:
    series = [
        Series(TITLES[name], *curve, METHODS[name], strong=name == "lmn")
        for name, curve in curves.items()
        if curve[0]
    ]
    return to_svg(lines(series, Axis(x), Axis(y, percent=True)))


def _cells(seen: Explained) -> Table:
    return Table(
        (
            Column("label", "Cell of label"),
            Column("share", "Share of the memory's score", ".1%"),
            Column("alpha", "Weight alpha", ".2f"),
        ),
        [
            {"label": str(cell.label), "share": cell.share, "alpha": cell.alpha}
            for cell in seen.explanation
        ],
        caption="The cells behind it, the largest share first.",
        note="Alpha counts, with some decay, how often the cell was written.",
    )


def _settings(done: TaskResult) -> list[str]:
    settings = {
        method.title: ", ".join(f"{name} {value}" for name, value in method.settings.items())
        for method in done.methods
    }
    return [f"{done.task.title}, {name}: {said or 'nothing'}" for name, said in settings.items()]


_MEANINGS = (
    ("not adapted", "The trained model as it is. It can never name a new label."),
    (
        "per-user counter",
        "How often and how lately the user visited each venue, mixed with what is popular.",
    ),
    ("nearest class mean", "The label whose average hidden vector is closest to the input's."),
    (
        "last-layer SGD",
        "One step of gradient descent on the model's last layer for each revealed label; a new "
        "label gets a new row.",
    ),
    ("LMN-fixed", "The model and a labeled memory, mixed with a fixed weight."),
    (
        "LMN",
        "The same memory, with a small recurrent network that decides at each step how far the "
        "memory is trusted. It is trained on the validation users and sees neither inputs nor "
        "features: only how sure model and memory are and how both did lately.",
    ),
    (
        "Validation and test",
        "Settings and the network of LMN are chosen on validation users by log-perplexity, for "
        "every method with at most the same number of trials. The test users are scored once.",
    ),
    (
        "Labels nobody can know",
        "A label's first appearance for a user, if it is new, has probability zero for every "
        "method; in the log-perplexity it counts as 1e-10.",
    ),
)
