"""How a method takes part in a table: what is searched on validation, and how it is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from labelmem.errors import ConfigError
from labelmem.experiments.task import SequenceTask
from labelmem.online import OnlineMethod
from labelmem.search import Grid, Point

__all__ = ["Contender", "contender"]


class Contender(ABC):
    """One method in one run.

    A subclass in a file of its own is all that a new method needs; it is found by its name.
    """

    grid: ClassVar[Grid] = {}
    """Hyper-parameters and the values that are tried on the validation streams."""
    start: ClassVar[Point] = {}
    """Where the search begins."""

    def __init__(self, task: SequenceTask) -> None:
        self.task = task
        self.options = dict(task.config["options"])

    @abstractmethod
    def build(self, point: Point) -> OnlineMethod[Any]:
        """The method with these hyper-parameters, fitted on the training streams."""

    def loss(self, point: Point) -> float:
        """What the search minimises."""
        return self.task.validation_loss(self.build(point))

    def finish(self, point: Point, work: Path) -> OnlineMethod[Any]:
        """The method as it is tested; long training belongs here, with checkpoints in ``work``."""
        return self.build(point)


def contender(name: str) -> Callable[[SequenceTask], Contender]:
    """The contender of a method, by its name in tables and records.

    Examples
    --------
    >>> contender("lmn-fixed").__name__
    'LMNFixed'
    """
    module = "labelmem.experiments.methods." + name.replace("-", "_")
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigError(f"there is no method {name!r}") from None
    made: Callable[[SequenceTask], Contender] = found.CONTENDER
    return made
