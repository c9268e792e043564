"""The paper's Table 1 beside the same figures of the files at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelmem.errors import DataError
from labelmem_paper.datasets.loading import load, source_of
from labelmem_paper.datasets.registry import PaperRow, info, names
from labelmem_paper.datasets.sequences import Sequences

__all__ = ["StatRow", "as_markdown", "table1"]


@dataclass(frozen=True)
class StatRow:
    """One data set of Table 1."""

    name: str
    paper: PaperRow
    """What the paper says."""
    ours: PaperRow | None = None
    """The same of the files at hand; validation counts as training. None if it is not here."""
    valid: int = 0
    """How many of the training sequences are for validation."""
    form: str = ""
    """Whether the files are raw or compact."""
    subset: bool = False
    """Whether they hold only part of what was published."""
    note: str = ""
    """What they lack."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def table1(root: str | Path | None = None, seed: int = 0) -> list[StatRow]:
    """Prepare every sequence data set that is here with its default recipe and describe it."""
    return [
        _row(name, paper, root, seed) for name in names() if (paper := info(name).paper) is not None
    ]


def as_markdown(rows: Iterable[StatRow]) -> str:
    """Return the table in Markdown.

    Examples
    --------
    >>> print(as_markdown([StatRow("fsq-nyc", PaperRow(670, 264, 90, 8325))]))
    | data set | | train | test | mean length | labels | files |
    |---|---|--:|--:|--:|--:|---|
    | fsq-nyc | paper | 670 | 264 | 90 | 8,325 | |
    | | ours | - | - | - | - | not here |
    """
    lines = [
        "| data set | | train | test | mean length | labels | files |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        lines.append(f"| {row.name} | paper | {_cells(row.paper)} | |")
        lines.append(f"| | ours | {_cells(row.ours)} | {_files(row)} |")
    return "\n".join(lines)


def _row(name: str, paper: PaperRow, root: str | Path | None, seed: int) -> StatRow:
    if source_of(name, root) is None:
        return StatRow(name, paper)
    data = load(name, seed=seed, root=root)
    if not isinstance(data, Sequences):
        raise DataError(f"{name} has a row in Table 1 but holds no sequences")
    split, source = data.split, data.source
    train, valid = len(split.train), len(split.valid)
    ours = PaperRow(train + valid, len(split.test), round(data.mean_length, 2), data.labels)
    return StatRow(name, paper, ours, valid, source.form, source.subset, source.note)


def _cells(row: PaperRow | None) -> str:
    if row is None:
        return "- | - | - | -"
    length = f"{row.mean_length:,.1f}".removesuffix(".0")
    return f"{row.train:,} | {row.test:,} | {length} | {row.labels:,}"


def _files(row: StatRow) -> str:
    if row.ours is None:
        return "not here"
    kind = f"{row.form}, a subset" if row.subset else row.form
    return f"{kind}: {row.note}" if row.note else kind
