"""Methods around a frozen head as contenders."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from labelmem.baselines import make
from labelmem.errors import UnsupportedError
from labelmem.online import OnlineMethod
from labelmem.search import Point
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.task import AdaptTask
from labelmem_paper.experiments.contender import TaskContender

__all__ = ["AdaptBaseline", "AdaptContender"]


class AdaptContender(TaskContender[AdaptTask, OnlineMethod[Any]]):
    """A method that is made of a head and what it was trained on.

    What it may choose, its ``grid``, it chooses in a rehearsal. It never sees a stream before it
    is tested.
    """

    @abstractmethod
    def build(self, point: Point, frozen: FrozenTask) -> OnlineMethod[Any]:
        """The method with these hyper-parameters, for a task or for its rehearsal."""

    def loss(self, point: Point) -> float:
        """The log-loss in the rehearsal; nothing where there is nothing to choose."""
        if not self.grid:
            return 0.0
        return self.task.rehearsed(self.build(point, self.task.first_rehearsal))

    def finish(self, point: Point, work: Path) -> OnlineMethod[Any]:
        """Around the task's own head."""
        return self.build(point, self.task.frozen)


class AdaptBaseline(AdaptContender):
    """A baseline of the library; what it fits, it fits on what the head was trained on."""

    name: ClassVar[str]

    def build(self, point: Point, frozen: FrozenTask) -> OnlineMethod[Any]:
        """Made, and fitted if it is a method that can be."""
        method = make(self.name, frozen.head(), **self.options, **self.chosen(point, frozen))
        try:
            method.fit([(frozen.train_h, frozen.train_y)])
        except UnsupportedError:  # it learns online only
            pass
        return method

    def chosen(self, point: Point, frozen: FrozenTask) -> Point:
        """The options that a point stands for."""
        return point
