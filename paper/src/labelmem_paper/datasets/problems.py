"""The sentences in which a data file's faults are told."""

from __future__ import annotations

from pathlib import Path

from labelmem.errors import DataError

__all__ = ["malformed", "nothing_left"]

_SHOWN = 60


def malformed(path: Path | str, line: int, seen: str, expected: str) -> DataError:
    """Describe a line that cannot be understood.

    Examples
    --------
    >>> print(malformed("clicks.dat", 7, "1,2", "4 fields"))
    clicks.dat, line 7: found '1,2', expected 4 fields. Mend or remove the line, or get the file
    again from its publisher
    """
    shown = seen if len(seen) <= _SHOWN else seen[:_SHOWN] + "..."
    return DataError(
        f"{path}, line {line}: found {shown!r}, expected {expected}. "
        "Mend or remove the line, or get the file again from its publisher"
    )


def nothing_left(path: Path | str, before: int, unit: str, recipe: object) -> DataError:
    """Describe a recipe that filters everything away."""
    return DataError(
        f"nothing is left of the {before:,} {unit} in {path} after {recipe}. "
        "Loosen its limits (smaller minima, larger maxima)"
    )
