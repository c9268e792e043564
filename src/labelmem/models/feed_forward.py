"""Classifiers of single inputs: a body that makes h, and a head on it."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["FeedForward"]


class FeedForward(nn.Module):
    """Logits of inputs (n, ...) by a linear head on what the body makes of them."""

    def __init__(self, body: nn.Sequential, dim: int, labels: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(dim, labels)

    def embed(self, x: Tensor) -> Tensor:
        """What the head sees: h (n, dim) of inputs (n, ...)."""
        h: Tensor = self.body(x)
        return h

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, labels) of inputs (n, ...)."""
        logits: Tensor = self.head(self.embed(x))
        return logits
