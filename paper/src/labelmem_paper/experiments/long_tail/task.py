"""The limited-memory study: who remembers rare labels when the memory is too small for all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from labelmem_paper.experiments.few_shot.embeddings import Embedding
from labelmem_paper.experiments.few_shot.task import FewShotTask, Shown, vectors
from labelmem_paper.experiments.long_tail.drawing import draw_long_tail, rare_figures
from labelmem_paper.experiments.records import Record

__all__ = ["TASK", "Limited", "LongTailTask"]


@dataclass(frozen=True)
class Limited:
    """A memory ready for the test."""

    answer: Callable[[Tensor, Tensor, int], Tensor]
    """The answers (N,) to vectors h (N, dim) with labels y (N,), given a number of cells."""
    parameters: int
    """Trained numbers."""


@dataclass(frozen=True)
class LongTailTask(FewShotTask):
    """One stream of the characters that nobody has seen, by the vectors of one ``embedding``.

    The label of rank r comes ``most / r`` times. Every memory has the same number of cells, one of
    ``capacities`` after another. Validation is a stream of training labels by drawings that were
    not taught, at the middle one of the capacities.
    """

    @cached_property
    def valid(self) -> Shown:
        """Training labels, not turned, as many as the test has."""
        straight = self.background[: int(self.data.background.sum())]
        return self._stream(straight[: self.config["labels"], self.config["taught"] :], 1)

    @cached_property
    def test(self) -> Shown:
        """Characters that nobody has seen, not turned."""
        others = self._pictures(self.data.kaiser_split()[1], 1)
        straight = others[: int((~self.data.background).sum())]
        return self._stream(straight[: self.config["labels"]], 2)

    def _stream(self, pictures: Tensor, stream: int) -> Shown:
        seed = 10 * self.run.seed + stream
        labels, drawings = pictures.shape[:2]
        return Shown(draw_long_tail(labels, drawings, self.config["most"], seed), pictures)

    @cached_property
    def shared(self) -> Embedding:
        """The embedding that all memories have, trained for none of them."""
        return self.embedding(self.config["embedding"])

    @cached_property
    def valid_vectors(self) -> Tensor:
        """The h of the validation stream."""
        return vectors(self.shared, self.valid)

    @property
    def capacities(self) -> list[int]:
        """Numbers of cells, from the smallest."""
        return sorted(self.config["capacities"])

    def missed_rarely(self, memory: Limited) -> float:
        """The mean share of misses on rare and on frequent labels of the validation stream."""
        middle = self.capacities[len(self.capacities) // 2]
        stream = self.valid.episode
        answers = memory.answer(self.valid_vectors, stream.label, middle)
        metrics = rare_figures(stream, answers, self.config["rare"], 1)["metrics"]
        return 1 - float(metrics["rare"] + metrics.get("frequent", metrics["rare"])) / 2

    def tested(self, ready: Limited) -> Record:  # type: ignore[override]
        """What a record keeps: the figures of every capacity."""
        stream = self.test.episode
        h = vectors(self.shared, self.test)
        metrics: Record = {}
        interval: Record = {}
        clock = time.perf_counter()
        for capacity in self.capacities:
            answers = ready.answer(h, stream.label, capacity)
            found = rare_figures(stream, answers, self.config["rare"])
            for part, said in ((metrics, found["metrics"]), (interval, found["interval"])):
                part |= {f"accuracy_{name}_at_{capacity}": value for name, value in said.items()}
        tokens = len(stream.label)
        seconds = (time.perf_counter() - clock) / len(self.capacities)
        return {
            "metrics": metrics,
            "interval": interval,
            "streams": len(self.test.pictures),
            "tokens": tokens,
            "us_per_token": round(1e6 * seconds / tokens, 2),
            "curve": [],
            "traces": [],
            "parameters": ready.parameters,
        }


TASK = LongTailTask
