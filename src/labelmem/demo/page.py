"""The demo's report as one page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from labelmem import __version__
from labelmem.demo import sentences as say
from labelmem.demo.curves import by_meeting, by_position, growth, smooth
from labelmem.demo.explained import Explained
from labelmem.demo.rows import table_of
from labelmem.demo.run import TaskResult
from labelmem.render.page import Page
from labelmem.render.palette import Look, looks
from labelmem.render.plots import Axis, Series, bars, lines, points, to_svg
from labelmem.render.svg import pixels
from labelmem.render.tables import Column, Table

__all__ = ["page_of"]

Drawing = tuple[str, str, str]
EXAMPLES = 3
"""Users whose theta is shown."""
SHOWN = 8
"""Most earlier inputs that are shown."""


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
        page.table(_settings(done))
    page.text(f"Made by labelmem {__version__} with seed {seed}.")
    return page


def _task(page: Page, done: TaskResult) -> None:
    page.section(done.task.title)
    page.text(*done.task.story)
    page.table(table_of(done))
    page.points(say.verdict(done))
    page.figures(_positions(done), _meetings(done))
    if done.explained is not None:
        _explained(page, done.explained)
    page.figures(_thetas(done), _growth(done))
    page.figures(_costs(done))


def _positions(done: TaskResult) -> Drawing:
    styles = looks([method.name for method in done.methods])
    curves = {method.name: by_position(method.trace) for method in done.methods}
    series = [
        Series(m.title, *curves[m.name], styles[m.name], strong=m.name == "lmn")
        for m in done.methods
    ]
    drawing = lines(series, Axis("Position in the stream"), Axis("Accuracy", percent=True))
    sees = say.along_the_stream(done, curves)
    return to_svg(drawing), "Accuracy along the stream.", sees


def _meetings(done: TaskResult) -> Drawing:
    styles = looks([method.name for method in done.methods])
    series = [
        Series(m.title, *by_meeting(m.trace), styles[m.name], strong=m.name == "lmn")
        for m in done.methods
    ]
    series = [one for one in series if len(one.x)]
    across = Axis("Examples of the label that the user has shown before")
    drawing = lines(series, across, Axis("Accuracy on new labels", percent=True))
    sees = say.by_meeting_sees(done, by_meeting(done["lmn"].trace))
    return to_svg(drawing), "What each example of a new label is worth.", sees


def _thetas(done: TaskResult) -> Drawing:
    series = []
    for user, theta in enumerate(done["lmn"].trace.theta[:EXAMPLES]):
        values = smooth(theta[~np.isnan(theta)])
        steps = [float(t + 1) for t in range(len(values))]
        series.append(Series(f"user {user + 1}", steps, values, _EXAMPLE_LOOKS[user]))
    drawing = lines(series, Axis("Position in the stream"), Axis("Theta", span=(0, 1)))
    return to_svg(drawing), "Trust in the memory, for three users.", say.theta_sees(done)


def _growth(done: TaskResult) -> Drawing:
    cells = done["lmn"].trace.cells
    steps, mean = growth(cells)
    ends = [spread(cells[:, : len(steps)], axis=0).tolist() for spread in (np.nanmax, np.nanmin)]
    series = [
        Series("most", steps, ends[0], Look("grey", "dashed")),
        Series("mean", steps, mean, Look("blue"), strong=True),
        Series("least", steps, ends[1], Look("grey", "dashed")),
    ]
    drawing = lines(series, Axis("Labels observed"), Axis("Cells of a user"))
    return to_svg(drawing), "Growth of the memory.", say.growth_sees(done)


def _costs(done: TaskResult) -> Drawing:
    styles = looks([method.name for method in done.methods])
    series = [
        Series(
            method.title,
            [method.us_per_step],
            [method.result.metrics["accuracy"]],
            styles[method.name],
            strong=method.name == "lmn",
        )
        for method in done.methods
    ]
    across = Axis("Microseconds per step (logarithmic)", log=True)
    drawing = points(series, across, Axis("Accuracy, all labels", percent=True))
    return to_svg(drawing), "Cost and accuracy.", say.cost_sees(done)


def _explained(page: Page, seen: Explained) -> None:
    page.heading("One prediction, explained")
    page.text(say.explained_sees(seen))
    page.raw(_strip(seen))
    voices = (
        ("model alone", seen.model_probs, Look("grey")),
        ("memory alone", seen.memory_probs, Look("orange")),
        ("LMN", seen.probs, Look("blue")),
    )
    series = [Series(name, [], values, look) for name, values, look in voices]
    # Labels of the stream's own stand in the order they were met; people read them sorted.
    order = sorted(range(len(seen.labels)), key=lambda i: str(seen.labels[i]))
    series = [Series(s.name, [], [s.y[i] for i in order], s.look) for s in series]
    names = [str(seen.labels[i]) for i in order]
    drawing = bars(names, series, Axis("Digit"), Axis("Probability", percent=True))
    sees = "What each of the two believes, and what they say together."
    page.figures((to_svg(drawing), "The two voices.", sees))
    page.table(_cells(seen))


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
        caption="The cells that spoke, the loudest first.",
        note=(
            "Shares of the memory's belief as it was mixed. "
            "Alpha counts, with some decay, how often the cell was written."
        ),
    )


def _settings(done: TaskResult) -> Table:
    rows = []
    for method in done.methods:
        chosen = ", ".join(f"{name} {value}" for name, value in method.settings.items())
        rows.append({"method": method.title, "settings": chosen or "nothing to choose"})
    columns = (Column("method", "Method"), Column("settings", "Settings"))
    return Table(columns, rows, caption=f"Settings for the {done.task.name} task.")


def _strip(seen: Explained) -> str:
    """The input, and some of what was written before under the label it got."""
    earlier = "".join(pixels(picture, "an earlier input", 64) for picture in seen.written[-SHOWN:])
    shown = _pictures(pixels(seen.picture, "the input", 96), "the input")
    if earlier:
        shown += _pictures(earlier, f"earlier inputs written under {seen.label}, the latest last")
    return f'<div class="strip">{shown}</div>'


def _pictures(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


_EXAMPLE_LOOKS = (Look("blue"), Look("orange", "dashed"), Look("green", "dashdot"))

_MEANINGS = (
    ("Not adapted", "The trained model as it is. It can never name a new label."),
    (
        "Per-user counter",
        "How often and how lately the user visited each venue, mixed with what is popular.",
    ),
    ("Nearest class mean", "The label whose average hidden vector is closest to the input's."),
    (
        "Last-layer SGD",
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
