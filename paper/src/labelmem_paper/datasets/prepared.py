"""The plain arrays in which prepared sequences are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from labelmem.logs.grouping import offsets_of
from labelmem.split import Split
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.datasets.numbering import renumber
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.strings import pack, unpack

__all__ = ["as_integers", "as_names", "as_sequences", "sequence_arrays"]

Integers = npt.NDArray[np.int64]


def sequence_arrays(
    groups: Integers, labels: Integers, name: Callable[[Integers], Iterable[str]]
) -> Arrays:
    """Number the labels that occur and mark where each group starts.

    Parameters
    ----------
    groups : user or session of each event; events of one stand together.
    labels : label of each event.
    name : tells what the given labels, those that occur, stand for.
    """
    tokens, used = renumber(labels)
    offsets = offsets_of(groups)
    users = groups[offsets[:-1]]
    return {"tokens": tokens, "offsets": offsets, "users": users, "names": pack(name(used))}


def as_sequences(
    name: str, arrays: Arrays, split: Callable[[Integers], Split], source: Source, recipe: object
) -> Sequences:
    """Make the container, whose ``split`` depends on the users."""
    users = as_integers(arrays, "users")
    return Sequences(
        name,
        tokens=as_integers(arrays, "tokens"),
        offsets=as_integers(arrays, "offsets"),
        users=users,
        names=as_names(arrays, "names"),
        split=split(users),
        source=source,
        recipe=recipe,
    )


def as_integers(arrays: Arrays, name: str) -> Integers:
    """Return one of the arrays as int64."""
    return arrays[name].astype(np.int64, copy=False)


def as_names(arrays: Arrays, name: str) -> tuple[str, ...]:
    """Return one of the arrays as the strings packed in it."""
    return unpack(arrays[name].astype(np.uint8, copy=False))
