"""Named features that come and go, as vectors whose places never change."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from labelmem.errors import InputError
from labelmem.interop.vectors import Array

__all__ = ["Features"]

_PLAIN = frozenset({float, int, bool, np.float64})  # an array is made of them without a question


class Features:
    """Gives each feature a place of its own in a vector, the first time it is met.

    A feature that is absent, None or NaN is missing: its place holds zero, the mean of a
    standardised feature.

    Parameters
    ----------
    names
        Features that have their places from the start, in this order.

    Examples
    --------
    >>> features = Features(["height"])
    >>> features.meet({"height": 1.8, "age": 30})
    >>> features.vector({"age": 31, "shoes": "red"})
    (array([ 0., 31.]), 1)
    """

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.places = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.places)

    def meet(self, x: Mapping[Hashable, Any]) -> None:
        """Give the new features among those of x their places, in an order that is not x's own."""
        new = x.keys() - self.places.keys()
        for name in sorted(new, key=repr):
            self.places[name] = len(self.places)

    def vector(self, x: Mapping[Hashable, Any]) -> tuple[Array, int]:
        """The values in their places, and how many there are; what has no place is left out.

        Raises
        ------
        InputError
            If a value is no finite number.
        """
        # As a rule all are there and plain.
        row: list[Any] = [*map(x.get, self.places)]
        if _PLAIN.issuperset(map(type, row)) and math.isfinite(sum(row)):
            return np.array(row, dtype=np.float64), len(row)
        values, known = np.zeros(len(self.places)), 0
        for place, (name, value) in enumerate(zip(self.places, row, strict=True)):
            number = math.nan if value is None else _number(name, value)
            if not math.isnan(number):
                values[place] = number
                known += 1
        return values, known


def _number(name: Hashable, value: Any) -> float:
    try:
        # A string of digits may be a code or a name; only its owner knows.
        number = math.inf if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise InputError(
            f"the feature {name!r} is {value!r}; expected a finite number. Encode anything else "
            "first, for example with river.preprocessing.OneHotEncoder"
        )
    return number
