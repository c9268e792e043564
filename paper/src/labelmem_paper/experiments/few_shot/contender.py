"""Few-shot methods as contenders: an embedding, and a memory that answers from its vectors."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from labelmem.search import Point
from labelmem_paper.experiments.contender import TaskContender
from labelmem_paper.experiments.few_shot.embeddings import Embedding
from labelmem_paper.experiments.few_shot.task import FewShotTask, Learner, Shown, size_of, vectors

__all__ = ["MemoryContender"]


class MemoryContender(TaskContender[FewShotTask, Learner]):
    """A memory on the vectors of an embedding that was trained through it.

    ``embedding = "classifier"`` in a table gives it one that was trained as a plain classifier
    instead, the same for every memory.
    """

    kind: ClassVar[str]
    """The embedding that is its own."""

    @cached_property
    def embedding(self) -> Embedding:
        """Trained, or found."""
        return self.task.embedding(self.options.get("embedding", self.kind))

    @cached_property
    def valid(self) -> Tensor:
        """The vectors of the validation episode, so that a trial need not embed it again."""
        return vectors(self.embedding, self.task.valid)

    @abstractmethod
    def answers(self, point: Point, h: Tensor, y: Tensor, labels: int) -> Tensor:
        """The answers (N,) of a memory with these hyper-parameters to vectors h (N, dim)."""

    def loss(self, point: Point) -> float:
        """The share of misses in the validation episode."""
        shown = self.task.valid
        labels, y = len(shown.pictures), shown.episode.label
        learner = Learner(lambda _: self.answers(point, self.valid, y, labels), 0)
        return self.task.missed(learner)

    def finish(self, point: Point, work: Path) -> Learner:
        """Embed the episode, then answer."""
        embedding = self.embedding

        def answer(shown: Shown) -> Tensor:
            h = vectors(embedding, shown)
            return self.answers(point, h, shown.episode.label, len(shown.pictures))

        return Learner(answer, size_of(embedding))
