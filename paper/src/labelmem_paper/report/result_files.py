"""Writing a report: one page, all tables in Markdown, every plot as PNG and SVG; or plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelmem.errors import StorageError
from labelmem.render.plots import to_svg
from labelmem.render.tables import Estimate
from labelmem.storage import write_file
from labelmem_paper.report.image_plots import image_drawings
from labelmem_paper.report.marks import save_png
from labelmem_paper.report.result_markdown import full_markdown_of
from labelmem_paper.report.result_page import page_of
from labelmem_paper.report.result_plots import drawings_of, memory_of, position_of
from labelmem_paper.report.results import Result, TableResults

__all__ = ["as_plain", "write_plots", "write_report"]


def write_report(tables: Sequence[TableResults], out: str | Path) -> list[Path]:
    """Write ``index.html``, ``tables.md`` and the plots into a folder; returns the files."""
    # All is drawn before the first file is touched.
    drawings = {
        (table.name, dataset.dataset): [
            *drawings_of(table, dataset),
            *image_drawings(table, dataset),
        ]
        for table in tables
        for dataset in table.datasets
    }
    page = page_of(tables, drawings).render()
    folder = _made(Path(out))
    texts = {"index.html": page, "tables.md": _markdown(tables)}
    figures = [one for several in drawings.values() for one in several]
    texts |= {f"{one.name}.svg": one.svg for one in figures}
    for name, text in texts.items():
        write_file(folder / name, text.encode())
    for one in figures:
        save_png(one.figure, folder / f"{one.name}.png")
    return sorted([folder / name for name in texts] + [folder / f"{f.name}.png" for f in figures])


def write_plots(tables: Sequence[TableResults], out: str | Path) -> list[Path]:
    """Write the plots that documents include: over the stream, over memory size, of pictures."""
    drawn = [
        drawing
        for table in tables
        for dataset in table.datasets
        for drawing in (
            position_of(table, dataset),
            memory_of(table, dataset),
            *image_drawings(table, dataset),
        )
    ]
    texts = {one.name: to_svg(one.figure, ground="white") for one in drawn if one is not None}
    folder = _made(Path(out))
    for name, svg in texts.items():
        write_file(folder / f"{name}.svg", svg.encode())
    return [folder / f"{name}.svg" for name in texts]


def as_plain(tables: Sequence[TableResults]) -> list[dict[str, Any]]:
    """Every figure of the tables as plain values, one entry for each row."""
    return [
        {
            "table": table.name,
            "dataset": dataset.dataset,
            "size": table.size,
            "subset": dataset.subset,
            **_plain(result, table.table.metrics),
            "paper": table.table.published.get(dataset.dataset, {}).get(result.method),
        }
        for table in tables
        for dataset in table.datasets
        for result in dataset.results
    ]


def _markdown(tables: Sequence[TableResults]) -> str:
    return "\n".join(
        f"# {table.name}: {table.table.title}\n\n{full_markdown_of(table)}\n" for table in tables
    )


def _plain(result: Result, metrics: Sequence[str]) -> dict[str, Any]:
    estimates = {name: result.estimate(name) for name in metrics}
    known = {name: one for name, one in estimates.items() if one is not None}
    return {
        "method": result.method,
        "cells": result.cells,
        "seeds": result.seeds,
        "left_out": result.left_out,
        "metrics": {name: one.value for name, one in known.items()},
        "interval": {name: _bounds(one) for name, one in known.items()},
        "variant_of": result.variant_of,
        "parameters": result.parameters,
        "us_per_token": None if math.isnan(result.us_per_token) else result.us_per_token,
    }


def _bounds(estimate: Estimate) -> list[float] | None:
    """None where there is no interval: JSON knows no nan."""
    return None if math.isnan(estimate.low) else [estimate.low, estimate.high]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder
