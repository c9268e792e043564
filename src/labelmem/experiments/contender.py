"""How a method takes part in a table: what is searched on validation, and how it is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from labelmem.errors import ConfigError
from labelmem.experiments.task import SequenceTask
from labelmem.online import OnlineMethod
from labelmem.search import Grid, Point

__all__ = ["METHODS", "Contender", "Task", "TaskContender", "contender"]

METHODS = {
    "sequences": "labelmem.experiments.methods",
    "images": "labelmem.experiments.image_methods",
    "few-shot": "labelmem.experiments.few_shot_methods",
    "long-tail": "labelmem.experiments.long_tail_methods",
}
"""Where the methods of each kind of table live."""


class Task(Protocol):
    """What every task has: its options, those of the row among them."""

    @property
    def config(self) -> Mapping[str, Any]:
        """All that the table says of the run."""


T = TypeVar("T", bound=Task)
M = TypeVar("M")


class TaskContender(ABC, Generic[T, M]):
    """One method in one run of some task ``T``; what is tested is an ``M``.

    A subclass in a file of its own is all that a new method needs; it is found by its name.
    """

    grid: Grid = {}
    """Hyper-parameters and the values that are tried on the validation streams."""
    start: Point = {}
    """Where the search begins."""

    def __init__(self, task: T) -> None:
        self.task = task
        # What a variant ``is`` has chosen this class; it is no option of the method.
        self.options = {k: v for k, v in task.config["options"].items() if k != "is"}

    @abstractmethod
    def loss(self, point: Point) -> float:
        """What the search minimises."""

    @abstractmethod
    def finish(self, point: Point, work: Path) -> M:
        """The method as it is tested; long training belongs here, with checkpoints in ``work``.

        It is called again where a run was prepared first and is tested later: what was trained
        must then be found in ``work``, to the end.
        """


class Contender(TaskContender[SequenceTask, OnlineMethod[Any]]):
    """A method on sequences of labels."""

    @abstractmethod
    def build(self, point: Point) -> OnlineMethod[Any]:
        """The method with these hyper-parameters, fitted on the training streams."""

    def loss(self, point: Point) -> float:
        """Nats per token on the validation streams."""
        return self.task.validation_loss(self.build(point))

    def finish(self, point: Point, work: Path) -> OnlineMethod[Any]:
        """As it was searched, where nothing is trained beside."""
        return self.build(point)


def contender(
    name: str, options: Mapping[str, Any] | None = None, task: str = "sequences"
) -> Callable[[Any], TaskContender[Any, Any]]:
    """The contender of a row: that of its name, or of what its options say it ``is``.

    Parameters
    ----------
    task
        The kind of the table; each has its own methods.

    Examples
    --------
    >>> contender("lmn-fixed").__name__
    'LMNFixed'
    >>> contender("one-cell", {"is": "lmn-fixed", "memory": {"capacity": 1}}).__name__
    'LMNFixed'
    >>> contender("lmn-fixed", task="images").__module__
    'labelmem.experiments.image_methods.lmn_fixed'
    """
    if task not in METHODS:
        raise ConfigError(f"there is no task {task!r}; known are {sorted(METHODS)}")
    name = (options or {}).get("is", name)
    module = METHODS[task] + "." + name.replace("-", "_")
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigError(f"there is no method {name!r}") from None
    made: Callable[[Any], TaskContender[Any, Any]] = found.CONTENDER
    return made
