"""The plain arrays in which prepared sequences are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from labelmem.logs.grouping import offsets_of
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.datasets.numbering import renumber
from labelmem_paper.datasets.strings import pack, unpack

__all__ = ["as_integers", "as_names", "sequence_arrays"]

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


def as_integers(arrays: Arrays, name: str) -> Integers:
    """Return one of the arrays as int64."""
    return arrays[name].astype(np.int64, copy=False)


def as_names(arrays: Arrays, name: str) -> tuple[str, ...]:
    """Return one of the arrays as the strings packed in it."""
    return unpack(arrays[name].astype(np.uint8, copy=False))
