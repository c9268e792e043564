"""The command ``labelmem``: a thin shell around the library.

Only typer is imported here. A sub-command's module, and everything heavy behind it, is imported
when that sub-command runs, so that ``labelmem --help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from labelmem.cli.shell import shell
from labelmem.errors import UnsupportedError

__all__ = ["app", "main"]

COMMANDS = {
    "demo": "Train, adapt and compare on bundled data; writes a report. Start here.",
    "fit": "Fit a model to a log of events: CSV, JSON Lines or Parquet.",
    "adapt": "Predict and learn every event of a log; users are remembered.",
    "predict": "Name what a user will most likely have next.",
    "explain": "Say why an item is predicted for a user.",
    "inspect": "Show what is remembered of a user.",
    "forget": "Delete all that is kept of a user, and check that it is gone.",
    "adapt-embeddings": "Classify embeddings of any encoder online; you need no model.",
    "doctor": "Say what is installed and which engine takes the steps; compile ahead.",
}
"""What each command does. It is a function of that name (with ``_`` for ``-``) in the module of
the same name, or in that of :data:`MODULES`."""
MODULES = dict.fromkeys(("predict", "explain", "inspect", "forget"), "one_user")
MOVED = ("data", "reproduce", "report")
"""What now belongs to the command ``labelmem-paper``."""

app = shell(__name__, COMMANDS, MODULES)


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


def _moved(name: str) -> None:
    """Say where a former sub-command is now."""

    def tell() -> None:
        raise UnsupportedError(
            f"labelmem {name} is now labelmem-paper {name}: pip install labelmem-paper"
        )

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(name, hidden=True, add_help_option=False, context_settings=settings)(tell)


for _name in MOVED:
    _moved(_name)
