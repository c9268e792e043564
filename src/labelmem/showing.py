"""How objects say what is in them: in a line, and as a table in notebooks."""

from __future__ import annotations

from collections.abc import Mapping

from labelmem import notebooks

__all__ = ["Facts", "Shown", "line"]

Facts = Mapping[str, int | str]
"""What there is by name: numbers are counts of what the name says, texts speak for themselves."""


def line(thing: object, facts: Facts) -> str:
    """One line about a thing.

    Examples
    --------
    >>> line(object(), {"streams": 1, "cells": 1200, "form": "default form"})
    'object(1 stream, 1200 cells, default form)'
    """
    told = (fact if isinstance(fact, str) else _counted(fact, name) for name, fact in facts.items())
    return f"{type(thing).__name__}({', '.join(told)})"


class Shown:
    """Says what is in it."""

    def _facts(self) -> Facts:
        raise NotImplementedError

    def __repr__(self) -> str:
        return line(self, self._facts())

    def _repr_html_(self) -> str:
        return notebooks.table(type(self).__name__, self._facts().items())


def _counted(number: int, name: str) -> str:
    return f"{number} {name.removesuffix('s') if number == 1 else name}"
