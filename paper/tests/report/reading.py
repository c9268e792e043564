"""Records as tables of results, and tables as lists of what one reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelmem_paper.report.results import TableResults, load_results
from report.made_up import Record, keep, made_up


def loaded(
    folder: Path,
    *records: Record,
    rows: Mapping[str, Any] | None = None,
    not_run: Mapping[str, Any] | None = None,
) -> TableResults:
    """Records of Table 2, of whose rows only what is given here is said."""
    (table,) = load_results(keep(folder, records))
    return replace(table, table=replace(table.table, options=rows or {}, not_run=not_run or {}))


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of every table row, headings and rulers included."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def variant(method: str, base: str = "lmn", **changes: Any) -> Record:
    """A run of a variant."""
    return made_up(method, config={"trials": 24, "options": {"is": base}}, **changes)
