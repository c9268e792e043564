"""Where a data set came from, told with every data set that is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Form", "Source"]

Form = Literal["raw", "compact", "generated"]


@dataclass(frozen=True)
class Source:
    """The files behind a loaded data set."""

    form: Form
    """``raw``: as published; ``compact``: repacked; ``generated``: made by a program."""
    paths: tuple[Path, ...] = ()
    """The files or the folder that were read."""
    subset: bool = False
    """Whether they hold only part of what was published; results must then say so."""
    note: str = ""
    """What they lack or how they differ from the published files."""

    def __str__(self) -> str:
        where = ", ".join(str(path) for path in self.paths) or "no file"
        return f"{where} ({self.form}{', a subset' if self.subset else ''})"
