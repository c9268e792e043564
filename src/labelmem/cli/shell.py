"""A command with sub-commands that are imported when they run, and mistakes told in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
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
    """Stands in for a command until somebody runs it or asks for its help.

    The command is a function of its name in the module, or the module's ``app``.

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
        module = import_module(self.module)
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer()
            app.command(self.name)(getattr(module, str(self.name).replace("-", "_")))
        app._add_completion, app.rich_markup_mode = False, None  # as the shell itself
        return typer.main.get_command(app).make_context(info_name, args, parent, **extra)


class Shell(TyperGroup):
    """Knows the sub-commands without importing them, and turns mistakes into one line."""

    package: ClassVar[str]
    """Where the module of each sub-command lies."""
    summaries: ClassVar[dict[str, str]]
    """What each sub-command does, by its name."""
    modules: ClassVar[Mapping[str, str]]
    """Modules of sub-commands that are called otherwise than these (with ``_`` for ``-``)."""

    @property
    def program(self) -> str:
        """What errors begin with: the name of the console script."""
        return self.package.partition(".")[0].replace("_", "-")

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in self.summaries.items():
            module = self.modules.get(name, name.replace("-", "_"))
            self.add_command(LazyCommand(name, summary, f"{self.package}.{module}"), name)

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; errors of labelmem are answers, not crashes."""
        try:
            return super().invoke(ctx)
        except (LabelMemError, OSError, KeyboardInterrupt) as error:
            message = _message(error)
            if message is None or os.environ.get("LABELMEM_DEBUG"):
                raise
            stopped = isinstance(error, KeyboardInterrupt)
            colour = None if stopped else "red"
            typer.secho(f"{self.program}: {message}", fg=colour, err=True)
            raise typer.Exit(130 if stopped else 2) from error


def shell(
    package: str, summaries: dict[str, str], modules: Mapping[str, str] | None = None
) -> typer.Typer:
    """A command whose sub-commands lie in modules of ``package``: see :class:`Shell`.

    Examples
    --------
    >>> app = shell("labelmem.cli", {"demo": "See it work."})
    >>> app.info.cls.summaries
    {'demo': 'See it work.'}
    """
    settings = {"package": package, "summaries": summaries, "modules": modules or {}}
    return typer.Typer(
        cls=type("Shell", (Shell,), settings),
        rich_markup_mode=None,  # plain help flows with the terminal and is the fastest
        add_completion=True,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _message(error: BaseException) -> str | None:
    """One line for an error that is no bug; None for one that is."""
    if isinstance(error, KeyboardInterrupt):
        return "stopped"
    if isinstance(error, LabelMemError):
        return " ".join(str(error).split()) or type(error).__name__
    assert isinstance(error, OSError)
    if error.errno not in CIRCUMSTANCES:
        return None
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
