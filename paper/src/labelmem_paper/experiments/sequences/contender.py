"""Methods on sequences of labels as contenders."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

from labelmem.online import OnlineMethod
from labelmem.search import Point
from labelmem_paper.experiments.contender import TaskContender
from labelmem_paper.experiments.sequences.task import SequenceTask

__all__ = ["Contender"]


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
