"""What came of predicting recorded steps, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Figures", "Outcome"]


@dataclass(frozen=True)
class Figures:
    """How well recorded steps were predicted; nan where there are none of a kind."""

    log_perplexity: float
    """Mean loss in nats."""
    accuracy: float
    accuracy_known: float
    """Of the steps with a label of the model's."""
    accuracy_new: float
    """Of the others, first encounters included."""
    steps: int
    steps_known: int
    steps_new: int


@dataclass(frozen=True)
class Outcome:
    """Loss and hit of every step, stream by stream."""

    loss: Tensor
    """(N,) nats."""
    hit: Tensor
    """(N,) whether the most probable label was the true one."""
    known: Tensor
    """(N,) whether the true label is one of the model's."""

    @staticmethod
    def joined(parts: Sequence[Outcome]) -> Outcome:
        """Those of some streams after those of others."""
        loss = torch.cat([part.loss for part in parts])
        hit = torch.cat([part.hit for part in parts])
        return Outcome(loss, hit, torch.cat([part.known for part in parts]))

    def costs(self, metric: str) -> Tensor:
        """(N,) what is to be low: nats, or for the metric ``accuracy`` 1 for every miss."""
        return (~self.hit).double() if metric == "accuracy" else self.loss

    def mean(self, metric: str) -> float:
        """The mean cost."""
        return float(self.costs(metric).mean())

    @property
    def figures(self) -> Figures:
        """The means."""
        known, hit = self.known, self.hit.double()
        return Figures(
            log_perplexity=float(self.loss.mean()),
            accuracy=float(hit.mean()),
            accuracy_known=float(hit[known].mean()),  # nan where there are none
            accuracy_new=float(hit[~known].mean()),
            steps=len(known),
            steps_known=int(known.sum()),
            steps_new=int((~known).sum()),
        )
