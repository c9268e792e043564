"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelmem.errors import ConfigError

if TYPE_CHECKING:
    from labelmem.logs.problems import Policy

__all__ = ["AsJson", "Device", "Model", "SkipBad", "Strict", "User", "policy_of", "resolved"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: cuda where there is one.")]
Model = Annotated[Path, typer.Argument(help="A model folder, as `labelmem fit` makes it.")]
User = Annotated[str, typer.Option(help="The user, as the log names them.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used, and count them.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop also at odd rows: duplicates, disorder, mixed types.")
]


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
