"""A command with sub-commands that are imported when they run, and mistakes told in one line."""

from __future__ import annotations

import errno
import os
from importlib import import_module
from typing import Any, ClassVar

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from labelmem.errors import LabelMemError

__all__ = ["LazyCommand", "Shell", "shell"]

CIRCUMSTANCES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
"""A full disk, or one that may not be read or written: no bug, wherever it turns up."""


class LazyCommand(TyperCommand):
    """Stands in for the ``app`` of a module until somebody runs it or asks for its help.

    Examples
    --------
    >>> LazyCommand("demo", "See it work.", "labelmem.cli.demo").get_short_help_str()
    'See it work.'
    """

    def __init__(self, name: str, summary: str, module: str) -> None:
        super().__init__(name, help=summary, short_help=summary)
        self.module = module

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Import the module and let its own command take over from here."""
        sub = import_module(self.module).app
        sub._add_completion, sub.rich_markup_mode = False, None  # as the shell itself
        return typer.main.get_command(sub).make_context(info_name, args, parent, **extra)


class Shell(TyperGroup):
    """Knows the sub-commands without importing them, and turns mistakes into one line."""

    package: ClassVar[str]
    """Where the module of each sub-command lies."""
    summaries: ClassVar[dict[str, str]]
    """What each sub-command does, by its name; its module has ``_`` for ``-``."""

    @property
    def program(self) -> str:
        """What errors begin with: the name of the console script."""
        return self.package.partition(".")[0].replace("_", "-")

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in self.summaries.items():
            module = f"{self.package}.{name.replace('-', '_')}"
            self.add_command(LazyCommand(name, summary, module), name)

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; errors of labelmem are answers, not crashes."""
        try:
            return super().invoke(ctx)
        except LabelMemError as error:
            if os.environ.get("LABELMEM_DEBUG"):
                raise
            typer.secho(f"{self.program}: {_one_line(error)}", fg="red", err=True)
            raise typer.Exit(2) from error
        except OSError as error:
            if error.errno not in CIRCUMSTANCES or os.environ.get("LABELMEM_DEBUG"):
                raise
            where = f"{error.filename}: " if error.filename else ""
            typer.secho(f"{self.program}: {where}{error.strerror}", fg="red", err=True)
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            if os.environ.get("LABELMEM_DEBUG"):
                raise
            typer.echo(f"{self.program}: stopped", err=True)
            raise typer.Exit(130) from error


def shell(package: str, summaries: dict[str, str]) -> typer.Typer:
    """A command whose sub-commands are modules of ``package``, each with an ``app``.

    Examples
    --------
    >>> app = shell("labelmem.cli", {"demo": "See it work."})
    >>> app.info.cls.summaries
    {'demo': 'See it work.'}
    """
    return typer.Typer(
        cls=type("Shell", (Shell,), {"package": package, "summaries": summaries}),
        rich_markup_mode=None,  # plain help flows with the terminal and is the fastest
        add_completion=True,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
