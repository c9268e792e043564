"""The command ``labelmem-paper``: data sets, experiments and tables of the paper.

As in :mod:`labelmem.cli` a sub-command's module is imported when that sub-command runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from labelmem.cli.shell import shell

__all__ = ["app", "main"]

COMMANDS = {
    "data": "List, fetch and describe the data sets of the experiments.",
    "reproduce": "Run the experiments behind the tables, and record them.",
    "report": "Turn recorded experiments into tables, plots and a page.",
}
"""Each name is also that of its module in this package, whose ``app`` is a ``typer.Typer``."""

app = shell(__name__, COMMANDS)


def _show_version(wanted: bool) -> None:
    if wanted:
        from labelmem_paper import __version__

        typer.echo(f"labelmem-paper {__version__}")
        raise typer.Exit()


@app.callback()
def labelmem_paper(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Reproduce the tables of "Labeled Memory Networks for Online Model Adaptation".

    Every method that the paper compares runs on every data set; each run appends one record.

    A first run in seconds:  labelmem-paper reproduce table2 --dataset synthetic --size smoke

    Set LABELMEM_DEBUG=1 to see where an error comes from.
    """


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app(prog_name="labelmem-paper")
