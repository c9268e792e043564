"""How a method takes part in a table: what is searched on validation, and how it is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from labelmem.errors import ConfigError
from labelmem.search import Grid, Point
from labelmem_paper.experiments.records import Record

__all__ = ["Task", "TaskContender"]


class Task(Protocol):
    """What every task has: data, options, those of the row among them, and a way to be scored."""

    @property
    def config(self) -> Mapping[str, Any]:
        """All that the table says of the run."""

    @property
    def data(self) -> Any:
        """The data set, with its ``source`` and ``recipe``."""

    def tested(self, ready: Any) -> Record:
        """What a record keeps of the test."""


T = TypeVar("T", bound=Task)
M = TypeVar("M")


class TaskContender(ABC, Generic[T, M]):
    """One method in one run of some task ``T``; what is tested is an ``M``.

    A subclass in a file of its own is all that a new method needs; it is found by its name.
    """

    grid: Grid = {}
    """Hyper-parameters and the values that are tried on the validation streams."""
    start: Point = {}
    """Where the search begins; a table may say otherwise, by ``start`` among the options."""

    def __init__(self, task: T) -> None:
        self.task = task
        # What a variant ``is`` has chosen this class; it is no option of the method.
        self.options = {k: v for k, v in task.config["options"].items() if k != "is"}
        begins = self.options.pop("start", {})
        if unknown := [name for name in begins if name not in self.start]:
            raise ConfigError(
                f"start has {unknown}; this search has {', '.join(self.start) or 'nothing to vary'}"
            )
        self.start = {**self.start, **begins}

    def leave_unsearched(self, names: Collection[str]) -> None:
        """Search none of these: the table has decided them."""
        self.grid = {name: values for name, values in self.grid.items() if name not in names}
        self.start = {name: value for name, value in self.start.items() if name not in names}

    @abstractmethod
    def loss(self, point: Point) -> float:
        """What the search minimises."""

    @abstractmethod
    def finish(self, point: Point, work: Path) -> M:
        """The method as it is tested; long training belongs here, with checkpoints in ``work``.

        It is called again where a run was prepared first and is tested later: what was trained
        must then be found in ``work``, to the end.
        """
