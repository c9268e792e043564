"""Memories of a limited size as contenders."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from torch import Tensor

from labelmem.search import Point
from labelmem_paper.experiments.contender import TaskContender
from labelmem_paper.experiments.few_shot.task import size_of
from labelmem_paper.experiments.long_tail.task import Limited, LongTailTask

__all__ = ["LimitedContender"]


class LimitedContender(TaskContender[LongTailTask, Limited]):
    """A memory on the vectors of the task's embedding; all have the same ones."""

    @abstractmethod
    def answers(self, point: Point, h: Tensor, y: Tensor, capacity: int) -> Tensor:
        """The answers (N,) with at most so many cells."""

    def _limited(self, point: Point) -> Limited:
        size = size_of(self.task.shared.body)
        return Limited(lambda h, y, capacity: self.answers(point, h, y, capacity), size)

    def loss(self, point: Point) -> float:
        """The mean share of misses on rare and on frequent labels."""
        return self.task.missed_rarely(self._limited(point))

    def finish(self, point: Point, work: Path) -> Limited:
        """As it was searched."""
        return self._limited(point)
