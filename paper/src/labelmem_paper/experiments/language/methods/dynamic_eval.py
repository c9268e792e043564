"""Dynamic evaluation (Krause 2018)."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from labelmem.metrics import FLOOR
from labelmem.search import Point
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.dynamic import DynamicEvaluation, mean_squares

WORST = -math.log(FLOOR)
"""The loss of steps so large that the numbers run away."""


class Dynamic(LanguageContender):
    """Step size, pull and floor are searched on the first ``search_words`` of validation.

    ``segment`` words lie between two steps; ``batches`` of the training text tell how large
    gradients usually are.
    """

    grid = {
        "lr": [1e-6, 3e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2],
        "pull": [0.0, 1e-3, 3e-3, 1e-2, 2e-2, 4e-2, 8e-2],
        "floor": [0.1, 0.3, 1.0, 3.0, 10.0],
    }
    start = {"lr": 1e-4, "pull": 1e-2, "floor": 1.0}

    @cached_property
    def squares(self) -> list[Tensor]:
        """Of the trained model, computed once."""
        task = self.task
        return mean_squares(
            self.model,
            task.train,
            task.opening,
            batches=int(self.options.get("batches", 200)),
            segment=int(self.options.get("segment", 5)),
            streams=int(self.options.get("streams", 16)),
        )

    def build(self, point: Point) -> DynamicEvaluation:
        """Around the model, which itself is left alone."""
        segment = int(self.options.get("segment", 5))
        return DynamicEvaluation(
            self.model, self.squares, self.task.opening, segment=segment, **point
        )

    def loss(self, point: Point) -> float:
        """Nats per word at the beginning of the validation text; one stream, as in the test."""
        words = self.task.valid[: int(self.options.get("search_words", 30_000))]
        total = torch.zeros((), dtype=torch.float64, device=words.device)
        for answer in self.build(point).read(words, 1):
            total += answer.nats().double().sum()
        found = float(total / len(words))
        return found if math.isfinite(found) else WORST


CONTENDER = Dynamic
