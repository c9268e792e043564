"""Options that several commands have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelmem.errors import ConfigError

if TYPE_CHECKING:
    from labelmem.logs.problems import Policy

__all__ = ["Abandon", "AsJson", "Device", "Header", "Model", "Predictions", "SkipBad", "Strict"]
__all__ += ["User", "policy_of", "print_json", "resolved", "show_figures"]

Abandon = Annotated[
    bool, typer.Option("--abandon", help="Give up a file that was begun and cannot be finished.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: cuda where there is one.")]
Header = Annotated[
    bool, typer.Option(help="Whether a CSV file names its columns; if not, they are 1, 2, ...")
]
Model = Annotated[Path, typer.Argument(help="A model folder, as `labelmem fit` makes it.")]
Predictions = Annotated[
    Path | None,
    typer.Option(help="Where to write predictions, as JSON Lines.", show_default="nowhere"),
]
User = Annotated[str, typer.Option(help="The user, as the log names them.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used, and count them.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop also at odd rows: duplicates, disorder, mixed types.")
]


def print_json(answer: dict[str, Any]) -> None:
    """The answer for programs."""
    typer.echo(json.dumps(answer, indent=2))


def policy_of(skip_bad: bool, strict: bool) -> Policy:
    """What to do about rows that are bad or odd."""
    if skip_bad and strict:
        raise ConfigError("--skip-bad and --strict contradict each other; give one of them")
    return "skip" if skip_bad else "strict" if strict else "stop"


def resolved(device: str) -> str:
    """A device that there is."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device is {device!r}, which cannot be used: {reason}") from error
    return device


def show_figures(outcome: dict[str, Any], *lines: str) -> None:
    """The tables of what was adapted to, further lines, and where the predictions are."""
    from rich.console import Console

    from labelmem.logs.page import curve_table, figures_table
    from labelmem.render.tables import to_rich

    console = Console(highlight=False)
    console.print(to_rich(figures_table(outcome)), to_rich(curve_table(outcome)))
    for line in lines:
        typer.echo(line)
    if outcome["output"]:
        typer.echo(f"predictions: {outcome['output']}")
