"""Corrections of the head's rows: a linear score for each label, learned from replayed examples."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Corrections"]


class Corrections:
    """One vector for each label, which is added to what the head's row says of it.

    The head itself stays as it is. A remembered example moves the vectors so that its own score
    changes by ``rate`` times its error, along the direction in which labels differ most compared
    with the scatter within them.
    """

    def __init__(self, dim: int, rate: float, kept: float, like: Tensor) -> None:
        self.rate, self.kept = rate, kept
        self.rows = like.new_zeros(0, dim)
        """(m, d) of the slots."""

    def open(self) -> None:
        """One more slot."""
        self.rows = torch.cat([self.rows, self.rows.new_zeros(1, self.rows.shape[1])])

    def scores(self, off: Tensor) -> Tensor:
        """(J, m) nats at keys relative to the origin (J, d)."""
        return off @ self.rows.T

    def learn(self, off: Tensor, across: Tensor, error: Tensor) -> None:
        """Replay ``J`` examples.

        Parameters
        ----------
        off
            (J, d) their keys relative to the origin.
        across
            (J, d) the same times the inverse of the covariance within labels.
        error
            (J, m) 1 for the true label, less the probabilities.
        """
        length = (across * off).sum(1, keepdim=True).clamp(min=1e-9)
        self.rows = self.kept * self.rows + self.rate * error.T @ (across / length)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        return {"rows": self.rows}
