"""The command ``labelmem``: a thin shell around the library.

Only typer is imported here. A sub-command's module, and everything heavy behind it, is imported
when that sub-command runs, so that ``labelmem --help`` answers at once.
"""

from __future__ import annotations

import errno
import os
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from labelmem.errors import LabelMemError

__all__ = ["app", "main"]

COMMANDS = {
    "demo": "Train, adapt and compare on bundled data; writes a report. Start here.",
    "fit": "Fit a model to a log of events: CSV, JSON Lines or Parquet.",
    "adapt": "Predict and learn every event of a log; users are remembered.",
    "predict": "Name what a user will most likely have next.",
    "explain": "Say why an item is predicted for a user.",
    "inspect": "Show what is remembered of a user.",
    "forget": "Delete all that is kept of a user, and check that it is gone.",
    "adapt-embeddings": "Classify embeddings of any encoder online, without a model.",
    "data": "List, fetch and describe the data sets of the experiments.",
    "reproduce": "Run the experiments behind the tables, and record them.",
    "report": "Turn recorded experiments into tables, plots and a page.",
}
"""Each name is also that of its module in this package (with ``_`` for ``-``), whose ``app`` is a
``typer.Typer``."""


CIRCUMSTANCES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
"""A full disk, or one that may not be read or written: no bug, wherever it turns up."""


class LazyCommand(TyperCommand):
    """Stands in for the ``app`` of a module until somebody runs it or asks for its help.

    Examples
    --------
    >>> LazyCommand("demo", "See it work.").get_short_help_str()
    'See it work.'
    """

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(name, help=summary, short_help=summary)
        self.module = f"{__name__}.{name.replace('-', '_')}"

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Import the module and let its own command take over from here."""
        sub = import_module(self.module).app
        sub._add_completion, sub.rich_markup_mode = False, None  # as the shell itself
        return typer.main.get_command(sub).make_context(info_name, args, parent, **extra)


class Shell(TyperGroup):
    """Knows the sub-commands without importing them, and turns mistakes into one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(LazyCommand(name, summary), name)

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; errors of labelmem are answers, not crashes."""
        try:
            return super().invoke(ctx)
        except LabelMemError as error:
            if os.environ.get("LABELMEM_DEBUG"):
                raise
            typer.secho(f"labelmem: {_one_line(error)}", fg="red", err=True)
            raise typer.Exit(2) from error
        except OSError as error:
            if error.errno not in CIRCUMSTANCES or os.environ.get("LABELMEM_DEBUG"):
                raise
            where = f"{error.filename}: " if error.filename else ""
            typer.secho(f"labelmem: {where}{error.strerror}", fg="red", err=True)
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            if os.environ.get("LABELMEM_DEBUG"):
                raise
            typer.echo("labelmem: stopped", err=True)
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=Shell,
    rich_markup_mode=None,  # plain help flows with the terminal and is the fastest
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from labelmem import __version__

        typer.echo(f"labelmem {__version__}")
        raise typer.Exit()


@app.callback()
def labelmem(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Make a trained classifier learn from every label its user reveals, without retraining.

    labelmem puts a small labeled memory beside any PyTorch classifier. Each revealed label is
    remembered with the model's own features, so that users' habits and labels the model was never
    trained on are predicted from the next step on.

    See it work in under two minutes:  labelmem demo

    Set LABELMEM_DEBUG=1 to see where an error comes from.
    """


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app(prog_name="labelmem")


def _one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
