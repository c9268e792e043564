"""``labelmem-paper data``: which data sets there are, getting them, and the paper's Table 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
from rich.progress import TransferSpeedColumn as SpeedColumn
from rich.table import Table

from labelmem_paper.datasets.fetch import fetch as fetch_files
from labelmem_paper.datasets.loading import source_of
from labelmem_paper.datasets.locate import download_folder
from labelmem_paper.datasets.registry import Info, PaperRow, info, names
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.stats import StatRow, as_markdown, table1

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Data sets: list, fetch, describe.")

Root = Annotated[
    Path | None,
    typer.Option(help="Folder to look in instead of LABELMEM_DATA.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_datasets(as_json: AsJson = False, root: Root = None) -> None:
    """Show every data set: its licence, its size, and whether it is here."""
    rows = [(info(name), source_of(name, root)) for name in names()]
    if as_json:
        typer.echo(json.dumps([_plain(facts, source) for facts, source in rows], indent=2))
        return
    table = Table("name", "licence", "published size", "here")
    for facts, source in rows:
        table.add_row(facts.name, facts.licence, facts.size, _here(source))
    Console().print(table)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name of the data set, as in `list`.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder to put it in.", show_default="the cache folder")
    ] = None,
) -> None:
    """Get a data set from its publisher; an interrupted download goes on where it ended."""
    console = Console(stderr=True)
    facts = info(name)
    console.print(f"[bold]{facts.title}[/bold]  licence: {facts.licence}", highlight=False)
    if facts.citation:
        console.print(f"Please cite: {facts.citation}", highlight=False)
    with _bars(console) as tell:
        done = fetch_files(name, to, tell)
    if not done:
        console.print(f"{name} is made by a program; there is nothing to fetch")
    for file in done:
        state = "as expected" if file.pinned else "not known beforehand; note it to compare"
        console.print(f"{file.path}\n  sha256 {file.sha256} ({state})", highlight=False)
    if done and to:
        console.print(f"Set LABELMEM_DATA={to} (downloads default to {download_folder(name)})")


@app.command()
def stats(
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    root: Root = None,
) -> None:
    """Show the paper's Table 1 beside the same figures of the files that are here."""
    rows = table1(root)
    if as_json:
        typer.echo(json.dumps([row.as_dict() for row in rows], indent=2))
    elif markdown:
        typer.echo(as_markdown(rows))
    else:
        Console().print(_stats_table(rows))


def _stats_table(rows: list[StatRow]) -> Table:
    table = Table("data set", "", caption="Validation sequences count as training ones.")
    for heading in ("train", "test", "mean length", "labels"):
        table.add_column(heading, justify="right")
    table.add_column("files")
    for row in rows:
        files = f"{row.form}, a subset" if row.subset else row.form
        table.add_row(row.name, "paper", *_numbers(row.paper), "")
        table.add_row("", "ours", *_numbers(row.ours), files if row.ours else "not here")
    return table


def _numbers(row: PaperRow | None) -> tuple[str, str, str, str]:
    if row is None:
        return ("-",) * 4
    return f"{row.train:,}", f"{row.test:,}", f"{row.mean_length:,g}", f"{row.labels:,}"


def _here(source: Source | None) -> str:
    if source is None:
        return "[dim]no[/dim]"
    if source.form == "generated":
        return "[green]always[/green]"
    kind = f"{source.form}{', a subset' if source.subset else ''}"
    # A folder of thousands of files is not worth adding up for this.
    size = sum(path.stat().st_size for path in source.paths if path.is_file())
    return f"[green]yes[/green], {kind}" + (f", {decimal(size)}" if size else "")


def _plain(facts: Info, source: Source | None) -> dict[str, Any]:
    here = None
    if source is not None:
        here = {**asdict(source), "paths": [str(path) for path in source.paths]}
    return {**asdict(facts), "here": here}


@contextmanager
def _bars(console: Console) -> Iterator[Any]:
    """Show one progress bar per file."""
    columns = ("{task.description}", BarColumn(), DownloadColumn(), SpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bars:
        tasks: dict[str, Any] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total or None)
            bars.update(tasks[name], completed=done, total=total or None)

        yield tell
