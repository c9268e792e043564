"""Progress of long work: a bar where a person watches, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

__all__ = ["Report", "progress_bar"]


class Report(Protocol):
    """Tell how far the work has come."""

    def __call__(self, advance: float = 1, note: str = "") -> None:
        """Move on by ``advance`` and show ``note`` beside the bar, e.g. the running metric."""


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Report]:
    """Show progress with rate and time left, on the terminal's error stream.

    Parameters
    ----------
    show
        None shows it where the error stream is a terminal and rich is installed.

    Examples
    --------
    >>> with progress_bar("work", total=3, show=False) as report:
    ...     for _ in range(3):
    ...         report(note="loss 0.1")
    """
    if show is None:
        show = sys.stderr.isatty()
    columns = _rich_columns() if show else None
    if columns is None:
        yield lambda advance=1, note="": None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(title, total=total, note="")
        yield lambda advance=1, note="": bars.update(task, advance=advance, note=note)


def _rich_columns() -> list[ProgressColumn] | None:
    """What a bar shows; None where rich is not installed."""
    try:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            ProgressColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text
    except ImportError:
        return None

    class Rate(ProgressColumn):
        """Steps per second, as soon as that is known."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.3g}/s")

    return [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
