"""Records of the table ``adapt`` with figures nobody measured."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from labelmem_paper.report.results import TableResults, load_results
from report.made_up import Record, keep, made_up

FORMS = ("new", "known", "few", "few-new", "swapped", "noisy")
FIGURES = ("accuracy", "accuracy_late", "log_loss", "gain_known", "gain_known_300", "ms")


def figure(method: str, task: str, seed: int, name: str) -> float:
    """A number between 0 and 1 that depends on all of these."""
    return round(random.Random(f"{method} {task} {seed} {name}").random(), 6)


def ran(
    method: str,
    task: str,
    seed: int = 0,
    forms: Sequence[str] = FORMS,
    metrics: dict[str, float] | None = None,
) -> Record:
    """One run; ``metrics`` replaces some figures."""
    names = [f"{form}.{name}" for form in forms for name in FIGURES]
    made = {name: figure(method, task, seed, name) for name in names} | (metrics or {})
    return made_up(
        method,
        seed,
        table="adapt",
        dataset=task,
        config={"options": {}},
        metrics=made,
        interval={name: [value - 0.01, value + 0.01] for name, value in made.items()},
    )


def adapt_results(folder: Path, runs: Iterable[Record]) -> TableResults:
    """The runs as a report reads them."""
    (results,) = load_results(keep(folder, runs, "adapt"))
    return results
