"""Read a delimited file block by block, checking its header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelmem.errors import DataError
from labelmem_paper.datasets.delimited import Table
from labelmem_paper.datasets.opening import read_blocks
from labelmem_paper.datasets.problems import malformed

__all__ = ["read_columns", "read_tables"]


def read_tables(
    path: Path,
    *,
    columns: int,
    delimiter: str = "\t",
    header: tuple[str, ...] = (),
    member: str = "",
) -> Iterator[Table]:
    """Yield the file's lines as tables.

    Parameters
    ----------
    path : the file, packed or not.
    columns : fields of each line.
    delimiter : the character between them.
    header : the names the first line must hold; empty when the file has no header.
    member : name of the wanted member when ``path`` is a zip.
    """
    line = 1
    for block in read_blocks(path, member):
        if line == 1 and header:
            found, _, block = block.partition(b"\n")
            names = tuple(found.decode("latin-1").rstrip("\r").split(delimiter))
            if names != header:
                raise malformed(path, 1, delimiter.join(names), delimiter.join(header))
            line = 2
        table = Table(block, columns=columns, path=path, delimiter=delimiter, first_line=line)
        line += len(table)
        yield table
    if line <= 1 + bool(header):
        raise DataError(f"{path} is empty; get it again from its publisher")


def read_columns(
    tables: Iterable[Table], *columns: Callable[[Table], npt.NDArray[Any]]
) -> Iterator[npt.NDArray[Any]]:
    """Yield some columns, each over the lines of all tables."""
    parts = [[column(table) for column in columns] for table in tables]
    return map(np.concatenate, zip(*parts, strict=True))
