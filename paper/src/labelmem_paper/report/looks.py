"""How series are drawn: those of known methods, of many others, and of what is no method."""

from __future__ import annotations

from collections.abc import Sequence

from labelmem.render.palette import COLOURS, METHODS, Look

__all__ = ["FAINT", "look_of", "looks"]

FAINT = Look("silver", "solid", ".")
"""For what is only there to be compared with."""
_SPARE = (
    Look("purple", "solid", "P"),
    Look("brown", "dashed", "X"),
    Look("purple", "dotted", "<"),
    Look("brown", "dashdot", ">"),
    Look("orange", "dashed", "p"),
    Look("green", "solid", "*"),
)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The looks of some methods: those everybody knows keep theirs, others share what is left.

    Examples
    --------
    >>> looks(["lmn", "mine"])["mine"].colour
    'purple'
    """
    spare = iter(_SPARE * (1 + len(names) // len(_SPARE)))
    return {name: METHODS[name] if name in METHODS else next(spare) for name in names}


def look_of(index: int) -> Look:
    """The look of the ``index``-th of some series that are not methods."""
    names = list(COLOURS)
    dashes = ("solid", "dashed", "dashdot", "dotted")
    return Look(names[index % len(names)], dashes[index % len(dashes)])
