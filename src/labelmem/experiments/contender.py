"""How a method takes part in a table: what is searched on validation, and how it is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from labelmem.errors import ConfigError
from labelmem.experiments.task import SequenceTask
from labelmem.online import OnlineMethod
from labelmem.search import Grid, Point

__all__ = ["Contender", "contender"]


class Contender(ABC):
    """One method in one run.

    A subclass in a file of its own is all that a new method needs; it is found by its name.
    """

    grid: Grid = {}
    """Hyper-parameters and the values that are tried on the validation streams."""
    start: Point = {}
    """Where the search begins."""

    def __init__(self, task: SequenceTask) -> None:
        self.task = task
        # What a variant ``is`` has chosen this class; it is no option of the method.
        self.options = {k: v for k, v in task.config["options"].items() if k != "is"}

    @abstractmethod
    def build(self, point: Point) -> OnlineMethod[Any]:
        """The method with these hyper-parameters, fitted on the training streams."""

    def loss(self, point: Point) -> float:
        """What the search minimises."""
        return self.task.validation_loss(self.build(point))

    def finish(self, point: Point, work: Path) -> OnlineMethod[Any]:
        """The method as it is tested; long training belongs here, with checkpoints in ``work``.

        It is called again where a run was prepared first and is tested later: what was trained
        must then be found in ``work``, to the end.
        """
        return self.build(point)


def contender(
    name: str, options: Mapping[str, Any] | None = None
) -> Callable[[SequenceTask], Contender]:
    """The contender of a row: that of its name, or of what its options say it ``is``.

    Examples
    --------
    >>> contender("lmn-fixed").__name__
    'LMNFixed'
    >>> contender("one-cell", {"is": "lmn-fixed", "memory": {"capacity": 1}}).__name__
    'LMNFixed'
    """
    name = (options or {}).get("is", name)
    module = "labelmem.experiments.methods." + name.replace("-", "_")
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigError(f"there is no method {name!r}") from None
    made: Callable[[SequenceTask], Contender] = found.CONTENDER
    return made
