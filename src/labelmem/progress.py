"""Progress of long work: a bar where a person watches, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

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
        None shows it where the error stream is a terminal.

    Examples
    --------
    >>> with progress_bar("work", total=3, show=False) as report:
    ...     for _ in range(3):
    ...         report(note="loss 0.1")
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda advance=1, note="": None
        return
    from rich import progress
    from rich.console import Console

    class Rate(progress.ProgressColumn):
        """Steps per second, as soon as that is known."""

        def render(self, task: progress.Task) -> str:
            return "" if task.speed is None else f"{task.speed:,.3g}/s"

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        Rate(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[note]}"),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:
        bar = bars.add_task(title, total=total, note="")
        yield lambda advance=1, note="": bars.update(bar, advance=advance, note=note)
