"""What ``labelmem demo`` does: run the tasks, show the tables, write the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from rich.console import Console

from labelmem import __version__
from labelmem.demo.digits import make_digits
from labelmem.demo.habits import make_habits
from labelmem.demo.report import as_plain, page_of, table_of, verdict
from labelmem.demo.run import TaskResult, run_task
from labelmem.demo.task import Size
from labelmem.errors import MissingExtraError
from labelmem.render.tables import to_rich
from labelmem.storage import write_file
from labelmem.targets import check_file

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
    results = run_demo(seed, quick)
    # Files first: they are there even if nobody reads the tables to their end.
    page_of(results, seed, quick).write(out)
    tasks = [as_plain(done) for done in results]
    figures = {"labelmem": __version__, "seed": seed, "quick": quick, "tasks": tasks}
    text = json.dumps(figures, indent=2, allow_nan=False) + "\n"
    if json_target == "-":
        sys.stdout.write(text)
    elif json_target is not None:
        write_file(json_target, text.encode())
    console = Console(stderr=json_target == "-", highlight=False)
    for done in results:
        console.print("", to_rich(table_of(done)))
        for sentence in verdict(done):
            console.print(f"- {sentence}", markup=False)
    console.print(f"\nReport: {out}", soft_wrap=True)


def run_demo(seed: int = 0, quick: bool = False) -> list[TaskResult]:
    """Run both tasks; the same seed gives the same figures, times apart."""
    size = Size.quick() if quick else Size()
    with one_thread():
        return [run_task(make(size, seed), size, seed) for make in (make_digits, make_habits)]


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
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
