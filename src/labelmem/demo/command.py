"""What ``labelmem demo`` does: run the tasks, show the tables, write the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from labelmem.errors import MissingExtraError
from labelmem.targets import check_file

if TYPE_CHECKING:
    from rich.console import Console

    from labelmem.demo.run import TaskResult

__all__ = ["run_command", "run_demo"]


def run_command(out: Path, seed: int, quick: bool, json_target: str | None) -> None:
    """Run the demo and show its results.

    Parameters
    ----------
    out
        Where the report goes.
    seed
        Of users, models and training.
    quick
        Whether to do very little, for tests.
    json_target
        A file for all figures, ``-`` for the standard output, None for no JSON. With ``-`` the
        tables go to the error stream, so that the output is JSON and nothing else.
    """
    require_extras()
    for target in (out, json_target):
        if target is not None and target != "-":
            check_file(Path(target))
    from rich.console import Console

    from labelmem.demo.page import page_of

    console = Console(stderr=json_target == "-", highlight=False)
    results = run_demo(seed, quick)
    # Files first: they are there even if nobody reads the tables to their end.
    page_of(results, seed, quick).write(out)
    if json_target is not None:
        write_json(results, seed, quick, json_target)
    show_tables(results, console)
    console.print(f"Report: {out}", soft_wrap=True)


def run_demo(seed: int = 0, quick: bool = False, show: bool | None = None) -> list[TaskResult]:
    """Run both tasks; the same seed gives the same figures, times apart."""
    from labelmem.demo.digits import make_digits
    from labelmem.demo.habits import make_habits
    from labelmem.demo.run import run_task
    from labelmem.demo.task import Size

    size = Size.quick() if quick else Size()
    with one_thread():
        tasks = (make(size, seed, show) for make in (make_digits, make_habits))
        return [run_task(task, size, seed, show) for task in tasks]


def show_tables(results: Sequence[TaskResult], console: Console) -> None:
    """One table for each task, and what it says."""
    from labelmem.demo.rows import table_of
    from labelmem.demo.sentences import verdict
    from labelmem.render.tables import to_rich

    for done in results:
        console.print()
        console.print(to_rich(replace(table_of(done), note="")))
        for sentence in verdict(done):
            console.print(f"- {sentence}", markup=False)
    console.print()


def write_json(results: Sequence[TaskResult], seed: int, quick: bool, target: str) -> None:
    """Write all figures to a file or to the standard output."""
    from labelmem import __version__
    from labelmem.demo.rows import as_plain
    from labelmem.storage import write_file

    figures = {
        "labelmem": __version__,
        "seed": seed,
        "quick": quick,
        "tasks": [as_plain(done) for done in results],
    }
    text = json.dumps(figures, indent=2, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_file(target, text.encode())


def require_extras() -> None:
    """Say at once, and not after a minute, that something is not installed."""
    names = {"sklearn": "scikit-learn", "matplotlib": "matplotlib"}
    missing = [title for module, title in names.items() if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f"the demo needs {' and '.join(missing)}: pip install 'labelmem[demo]'"
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one core: on arrays this small, threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
