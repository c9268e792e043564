"""Yoochoose: clicks of an online shop's visitors, session by session (RecSys Challenge 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelmem.config import check_limits
from labelmem.errors import DataError
from labelmem.logs.grouping import starts
from labelmem.split import Split, by_time
from labelmem_paper.datasets import prepared
from labelmem_paper.datasets.archive import load_arrays
from labelmem_paper.datasets.filtering import Filters
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.numbering import number
from labelmem_paper.datasets.prepared import as_integers
from labelmem_paper.datasets.problems import nothing_left
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.tables import read_columns, read_tables
from labelmem_paper.datasets.timestamps import iso_milliseconds

__all__ = ["DATASET", "YoochooseRecipe"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class YoochooseRecipe:
    """How clicks become sequences.

    Sessions stand in the order of their first click. The steps, in this order: merge repeats; drop
    rare items; merge again; drop short sessions; number the items that remain; split by time.

    Examples
    --------
    >>> YoochooseRecipe(min_length=10).merge_repeats
    True
    """

    merge_repeats: bool = True
    """Whether clicks on the same item in a row count once."""
    min_item_count: int = 1
    """Fewest clicks of an item that is kept."""
    min_length: int = 8
    """Fewest clicks of a session that is kept."""
    max_length: int | None = None
    """Most clicks of a session that is kept; None sets no limit."""
    test_share: float = 0.2
    """Share of the sessions, the last in time, to test on."""
    valid_share: float = 0.1
    """Share of the others, again the last in time, to validate on."""

    def __post_init__(self) -> None:
        check_limits(self, ("min_item_count", "min_length"))


def read_raw(paths: tuple[Path, ...], recipe: YoochooseRecipe) -> Arrays:
    """Read ``yoochoose-clicks.dat``: session, ISO time, item, category; no header."""
    session, time, item = read_columns(
        read_tables(paths[0], columns=4, delimiter=","),
        lambda t: t.integers(0),
        lambda t: iso_milliseconds(t, 1),
        lambda t: t.integers(2),
    )
    order = _in_time(session, time)
    return prepare(session[order], item[order], recipe, paths[0])


def read_compact(paths: tuple[Path, ...], recipe: YoochooseRecipe) -> Arrays:
    """Read the repacked arrays, whose sessions already stand in the order of first clicks."""
    arrays = load_arrays(paths[0], ("items", "offsets", "source_session"))
    lengths = np.diff(as_integers(arrays, "offsets"))
    session = as_integers(arrays, "source_session")
    if len(session) != len(lengths) or int(lengths.sum()) != len(arrays["items"]):
        raise DataError(f"{paths[0]}: its offsets do not fit its items; get the file again")
    return prepare(np.repeat(session, lengths), as_integers(arrays, "items"), recipe, paths[0])


def prepare(session: Integers, item: Integers, recipe: YoochooseRecipe, path: Path) -> Arrays:
    """Apply the recipe's steps to clicks that stand in order."""
    filters = Filters(
        merge_repeats=recipe.merge_repeats,
        min_count=recipe.min_item_count,
        min_length=recipe.min_length,
        max_length=recipe.max_length,
    )
    # Item ids are small enough to be counted as they are; sorting millions of them is not needed.
    dense, names = number(item) if int(item.max(initial=0)) > 10 * len(item) else (item, None)
    groups, labels = filters.apply(session, dense)
    if not len(groups):
        raise nothing_left(path, len(session), "clicks", recipe)
    return prepared.sequence_arrays(
        groups, labels, lambda used: map(str, (used if names is None else names[used]).tolist())
    )


def as_sequences(arrays: Arrays, recipe: YoochooseRecipe, source: Source, seed: int) -> Sequences:
    """Make the container. The split is by time, so the seed changes nothing."""

    def split(users: Integers) -> Split:
        return by_time(len(users), test=recipe.test_share, valid=recipe.valid_share)

    return prepared.as_sequences("yoochoose", arrays, split, source, recipe)


def _in_time(session: Integers, time: Integers) -> Integers:
    """Order clicks by their session's first click, then by time; ties keep the file's order."""
    order = np.lexsort((time, session))
    first = starts(session[order])
    begin = time[order][first][np.cumsum(first) - 1]
    # A stable sort keeps the clicks of a session together and in time unless two sessions begin in
    # the same millisecond; the session number settles that, being the order it has already.
    return order[np.argsort(begin, kind="stable")]


DATASET = Dataset(
    "yoochoose",
    YoochooseRecipe(),
    layouts=(
        Layout("raw", ("yoochoose-clicks.dat",), read_raw),
        Layout("raw", ("yoochoose-data/yoochoose-clicks.dat",), read_raw),
        Layout(
            "compact",
            ("yoochoose_apr2014_17days.npz",),
            read_compact,
            subset=True,
            note="the first 17 of 183 days, 3,370,578 of 33,003,944 clicks; items with 5 or more",
        ),
    ),
    assemble=as_sequences,
)
