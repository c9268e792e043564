"""A trained classifier that stays as it is, and the streams it meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["FrozenTask", "Stream"]


@dataclass(frozen=True, eq=False)
class Stream:
    """What one user shows and says, in the order of time."""

    h: Tensor
    """(T, d) what the head sees."""
    y: Tensor
    """(T,) the labels that are revealed; ids from L on are labels the head has never seen."""
    truth: Tensor
    """(T,) the true labels, which a method never sees; they differ from y under noise alone."""

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int | None = None) -> Stream:
        """The steps from ``start`` up to ``stop``."""
        steps = slice(start, stop)
        return Stream(self.h[steps], self.y[steps], self.truth[steps])


@dataclass(frozen=True, eq=False)
class FrozenTask:
    """A linear head on features, what it was trained on, and streams of known and new labels."""

    name: str
    weight: Tensor
    """(L, d) of the head."""
    bias: Tensor | None
    """(L,) of the head."""
    train_h: Tensor
    """(N, d) what the head was trained on, or a sample of it."""
    train_y: Tensor
    """(N,) the labels of these, 0 .. L-1."""
    streams: Mapping[str, Sequence[Stream]]
    """The streams of each form; see :mod:`labelmem_paper.experiments.adapt.forms`."""

    @property
    def labels(self) -> int:
        """The number L of labels that the head knows."""
        return len(self.weight)

    def head(self) -> nn.Linear:
        """The classifier as a layer of its own; it is not trained any further."""
        labels, dim = self.weight.shape
        layer = nn.Linear(dim, labels, bias=self.bias is not None)
        with torch.no_grad():
            layer.weight.copy_(self.weight)
            if self.bias is not None:
                layer.bias.copy_(self.bias)
        return layer.requires_grad_(False)
