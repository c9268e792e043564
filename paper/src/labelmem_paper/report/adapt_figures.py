"""Figures of methods over tasks: means where a method has all of them, and the worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from labelmem_paper.report.pairing import PairedEstimate
from labelmem_paper.report.results import TableResults

__all__ = ["TaskFigures", "Worst"]


class Worst(NamedTuple):
    """A figure, and where it was found."""

    value: float
    task: str
    form: str


@dataclass(frozen=True)
class TaskFigures:
    """What is recorded of a table whose data sets are tasks, some of them kept apart."""

    results: TableResults

    @property
    def tasks(self) -> list[str]:
        """The tasks that are averaged."""
        return [one for one in self._recorded if one not in self.results.table.apart]

    @property
    def apart(self) -> list[str]:
        """The tasks that are kept apart."""
        return [one for one in self._recorded if one in self.results.table.apart]

    @property
    def _recorded(self) -> list[str]:
        return [one.dataset for one in self.results.datasets]

    def of(self, method: str, task: str, metric: str) -> PairedEstimate | None:
        """A figure of one method on one task, None where there is none."""
        (dataset,) = (one for one in self.results.datasets if one.dataset == task)
        found = dataset.find(method)
        return None if found is None else found.estimate(metric)

    def over(self, method: str, metric: str, tasks: Sequence[str]) -> dict[str, float] | None:
        """A figure on all of the tasks that have it; None where the method lacks one of them.

        A mean over other tasks could not be compared.
        """
        having = [task for task in tasks if self.has(task, metric)]
        found = {task: one.value for task in having if (one := self.of(method, task, metric))}
        return found if having and len(found) == len(having) else None

    def has(self, task: str, metric: str) -> bool:
        """Whether any method has a figure on a task."""
        return any(self.of(method, task, metric) is not None for method in self.results.compared)

    def mean(self, method: str, metrics: Iterable[str], tasks: Sequence[str]) -> float | None:
        """The mean over metrics of the means over tasks; metrics that no task has take no part."""
        wanted = [m for m in metrics if any(self.has(task, m) for task in tasks)]
        found = [self.over(method, metric, tasks) for metric in wanted]
        complete = [one for one in found if one is not None]
        if not complete or len(complete) < len(found):
            return None
        return fmean(fmean(one.values()) for one in complete)

    def worst(self, method: str, metrics: Iterable[str], tasks: Sequence[str]) -> Worst | None:
        """The lowest figure over metrics and tasks; None where the method lacks one of them."""
        lowest: list[Worst] = []
        for metric in metrics:
            if not any(self.has(task, metric) for task in tasks):
                continue
            found = self.over(method, metric, tasks)
            if found is None:
                return None
            form = metric.partition(".")[0]
            lowest += [Worst(value, task, form) for task, value in found.items()]
        return min(lowest, default=None)

    def seeds(self, method: str) -> list[int]:
        """The seeds that the method has on every task that it was run on."""
        found = [one.find(method) for one in self.results.datasets]
        runs = [set(result.seeds) for result in found if result is not None]
        return sorted(set.intersection(*runs)) if runs else []
