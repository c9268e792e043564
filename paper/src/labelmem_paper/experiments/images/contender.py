"""Methods among pictures as contenders: made in one world, tested in another."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from labelmem.baselines import make
from labelmem.baselines.base import Baseline
from labelmem.errors import UnsupportedError
from labelmem.online import OnlineMethod
from labelmem.search import Point
from labelmem_paper.experiments.contender import TaskContender
from labelmem_paper.experiments.images.task import ImageTask, Tested
from labelmem_paper.experiments.images.world import World

__all__ = ["ImageBaseline", "ImageContender"]


class ImageContender(TaskContender[ImageTask, Tested]):
    """A method that is searched in the validation world, and made anew in the test world."""

    @abstractmethod
    def build(self, point: Point, world: World) -> OnlineMethod[Any]:
        """The method with these hyper-parameters in a world."""

    def loss(self, point: Point) -> float:
        """The share of second showings that are missed."""
        return self.task.validation_loss(self.build(point, self.task.valid))

    def finish(self, point: Point, work: Path) -> Tested:
        """In the test world, once with a head for all labels and once for the seen ones alone."""
        world = self.task.test
        return Tested(self.build(point, world), self.build(point, world.among(self.task.seen)))


class ImageBaseline(ImageContender):
    """A baseline of the package around the head; what it fits, it fits on what was taught."""

    name: ClassVar[str]

    def __init__(self, task: ImageTask) -> None:
        super().__init__(task)
        self._fitted: dict[int, Baseline[Any, Any]] = {}

    def build(self, point: Point, world: World) -> OnlineMethod[Any]:
        """Fitted once in each world; a trial only changes its options."""
        if id(world.head) not in self._fitted:
            made = make(self.name, world.head, **self.options)
            try:
                made.fit(world.taught_streams)
            except UnsupportedError:  # it learns online only
                pass
            self._fitted[id(world.head)] = made
        return self._fitted[id(world.head)].variant(**point)
