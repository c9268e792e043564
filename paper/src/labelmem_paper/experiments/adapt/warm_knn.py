"""Nearest neighbours that know what the head was trained on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.baselines.base import refuse_options
from labelmem.baselines.knn import KNN
from labelmem.online import Recorded

__all__ = ["WarmKNN"]


class WarmKNN(KNN):
    """Every stream begins with the training examples among its past.

    Examples
    --------
    >>> taught = torch.eye(2), torch.tensor([1, 0])  # where the head would say 0, 1
    >>> head = torch.nn.Linear(2, 2)
    >>> with torch.no_grad():
    ...     _ = head.weight.copy_(torch.eye(2))
    >>> stream = WarmKNN(head).variant(theta=0.9).fit([taught]).stream()
    >>> stream.predict([1.0, 0.0]).label
    1
    """

    taught: tuple[Tensor, Tensor] | None = None
    """Vectors (N, d) of length one, and their labels (N,)."""

    def fit(self, sequences: Iterable[Recorded], batch_size: int = 256, **options: Any) -> Self:
        """Keep the training examples."""
        refuse_options(self.name, options)
        h, y = zip(*self.hidden(sequences, batch_size), strict=True)
        self.taught = F.normalise(torch.cat(h)), torch.cat(y)
        return self

    def initial_state(self, streams: int) -> Any:
        """What was taught, and nothing of the stream's own."""
        state = super().initial_state(streams)
        if self.taught is None:
            return state
        h, y = (part.expand(streams, *part.shape).clone() for part in self.taught)
        return replace(state, h=h, label=y, seen=torch.full_like(state.seen, y.shape[1]))
