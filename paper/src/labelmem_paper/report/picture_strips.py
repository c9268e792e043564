"""Test sequences of pictures as strips: what was shown, what was said, and which cells decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError
from labelmem.render.page import Page
from labelmem.render.svg import pixels
from labelmem_paper.experiments.images.drawings import load_images
from labelmem_paper.experiments.records import Record
from labelmem_paper.experiments.table import Run
from labelmem_paper.report.results import DatasetResults

__all__ = ["add_strips", "strip_html"]

CELLS = 2
"""How many cells are drawn of each step."""
SIDE = 44
"""Of a picture on the page."""

Pictures = npt.NDArray[np.uint8]


def add_strips(page: Page, dataset: DatasetResults) -> None:
    """Draw the strips that the records of a data set tell of, or say why they are not here.

    Records keep the numbers of pictures, not the pictures: these are taken from the data set.
    """
    records = [r for result in dataset.results for r in result.records if r.get("strips")]
    if not records:
        return
    record = min(records, key=lambda one: (one["method"] != "lmn", one["seed"]))
    page.heading(f"Sequences of {record['method']}, step by step")
    named = ("table", "dataset", "method", "seed", "size", "config")
    try:
        data = load_images(Run(**{name: record[name] for name in named}))
    except DataError:
        page.text(
            "The pictures are not drawn here: they belong to the data set, which was not found "
            "when this page was made. LABELMEM_DATA names the folder that holds it."
        )
        return
    page.text(
        f"The first test sequences of seed {record['seed']}, whatever became of them. Below each "
        "picture stands a drawing of the character that was answered, how far the memory was "
        "trusted, and the cells with the largest shares of its score, each drawn as the mean of "
        "what it holds."
    )
    for strip in record["strips"]:
        page.raw(strip_html(strip, data.pixels))


def strip_html(strip: Record, pictures: Pictures) -> str:
    """One sequence as a table, a column for each step.

    Parameters
    ----------
    strip
        As a record has it: see :mod:`labelmem_paper.experiments.images.strips`.
    pictures
        (n, side, side) all pictures of the data set.
    """
    rows: list[tuple[str, Callable[[Record], str]]] = [
        ("shown", lambda step: _drawn([step["picture"]], pictures, _shown(step))),
        ("", lambda step: escape(_shown(step))),
        ("answer", lambda step: _drawn([step["answer"]], pictures, "the answer")),
        ("", lambda step: "right" if step["right"] else "<strong>wrong</strong>"),
        ("theta", lambda step: "" if step["theta"] is None else f"{step['theta']:.2f}"),
        ("memory", lambda step: _cells(step["cells"][:CELLS], pictures)),
    ]
    body = "".join(_row(name, [cell(step) for step in strip["steps"]]) for name, cell in rows)
    title = f"Test sequence {strip['sequence']}"
    return f'<div class="scroll" tabindex="0" aria-label="{title}"><table>{body}</table></div>'


def _row(name: str, cells: Sequence[str]) -> str:
    return f"<tr><th>{name}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _shown(step: Record) -> str:
    """Whether the label was known to the network, and whether it came before."""
    label = "seen label" if step["known"] else "new label"
    return f"{label}, {'again' if step['again'] else 'first time'}"


def _cells(cells: Sequence[Record], pictures: Pictures) -> str:
    """The cells that spoke loudest, with their shares."""
    return "".join(
        _drawn(cell["pictures"], pictures, "what a cell holds")
        + f"<small>{cell['share']:.0%}</small>"
        for cell in cells
    )


def _drawn(numbers: Sequence[int], pictures: Pictures, description: str) -> str:
    mean = pictures[list(numbers)].mean(axis=0)
    return pixels(mean, description, SIDE)
