"""``labelmem-paper report``: records as tables, plots, one page, and blocks of a README."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelmem.errors import ConfigError

if TYPE_CHECKING:
    from labelmem_paper.report.readme import Update
    from labelmem_paper.report.results import TableResults

__all__ = ["app"]

app = typer.Typer()


@app.command()
def report(
    results: Annotated[
        Path, typer.Option(help="Folder of the records, as `labelmem-paper reproduce` writes them.")
    ] = Path("results"),
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="report in --results")
    ] = None,
    size: Annotated[str, typer.Option(help="Which runs to show: paper or smoke.")] = "paper",
    readme: Annotated[
        list[Path] | None,
        typer.Option(
            help="A Markdown file whose result blocks are made anew; may be said several times.",
            show_default=False,
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            help="A folder for plots as SVG that documents include.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; exit with 1 if the blocks of --readme (or README.md) are stale.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Turn records into index.html (one self-contained page), tables.md, and plots as PNG and SVG.

    Figures of several seeds are averaged. Where a table was changed between runs, only those with
    the newest settings count.

    A result block of a README stands between <!-- results:table2 --> and <!-- /results:table2 -->;
    table2:main has what matters most of a table, table2:more the rest, adapt-summary one table of
    adapt; table1 is made from the data sets, where they are here.

      labelmem-paper report --readme README.md --readme docs/results.md

      labelmem-paper report --plots docs/plots

      labelmem-paper report --check

    Needs the extra:  pip install 'labelmem-paper[report]'
    """
    from labelmem_paper.report.readme import updated
    from labelmem_paper.report.results import load_results

    tables = load_results(results, size)
    pages = readme or ([Path("README.md")] if check else [])
    updates = {page: updated(_read(page), tables) for page in pages}
    if check:
        _check(updates, as_json)
        return
    written = _write(tables, out or results / "report", plots)
    for page, update in updates.items():
        _rewrite(page, update)
    if as_json:
        from labelmem_paper.report.result_files import as_plain

        files = [str(path) for path in written]
        typer.echo(json.dumps({"rows": as_plain(tables), "files": files}, indent=2))
        return
    _show(tables)
    typer.echo(f"wrote {written[0].parent / 'index.html'} and {len(written) - 1} more files")


def _read(readme: Path) -> str:
    try:
        return readme.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {readme}: {error}; name a Markdown file") from error


def _write(tables: Sequence[TableResults], out: Path, plots: Path | None) -> list[Path]:
    from labelmem_paper.report.result_files import write_plots, write_report

    written = write_report(tables, out)
    return written if plots is None else [*written, *write_plots(tables, plots)]


def _check(updates: Mapping[Path, Update], as_json: bool) -> None:
    if as_json:
        told = {
            name: [block for update in updates.values() for block in getattr(update, name)]
            for name in ("stale", "skipped")
        }
        typer.echo(json.dumps(told, indent=2))
    else:
        for page, update in updates.items():
            _tell_skipped(update)
            for name in update.stale:
                typer.echo(
                    f"{page}: the block results:{name} does not match the records; run "
                    f"`labelmem-paper report --readme {page}`",
                    err=True,
                )
            if not update.stale:
                typer.echo(f"{page} matches the records")
    if any(update.stale for update in updates.values()):
        raise typer.Exit(1)


def _rewrite(readme: Path, update: Update) -> None:
    from labelmem.storage import write_file

    _tell_skipped(update)
    if update.stale:
        write_file(readme, update.text.encode())
        typer.echo(f"{readme}: renewed {', '.join(update.stale)}", err=True)


def _tell_skipped(update: Update) -> None:
    for block in update.skipped:
        typer.echo(f"skipped the block results:{block}", err=True)


def _show(tables: Sequence[TableResults]) -> None:
    from rich.console import Console

    from labelmem.render.tables import to_rich
    from labelmem_paper.report.result_tables import table_of

    console = Console()
    for table in tables:
        for dataset in table.datasets:
            console.print(to_rich(table_of(table, dataset)), "")
