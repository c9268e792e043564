"""What a compiled read of some of one stream's cells tells, each the only one of its label."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import Array, tensor
from labelmem.reading import MemoryRead

__all__ = ["NearRead"]


class NearRead(MemoryRead):
    """All is there; it is put in its form when it is asked for.

    Parameters
    ----------
    time
        The latest observation.
    names
        (3, k) the cells' positions, their labels and when they were written.
    told
        (3, k) their weights, their cosines with h, and Eq. 3's s.
    """

    lone = True
    time: int
    names: Array
    told: Array

    def __init__(self, time: int, names: Array, told: Array) -> None:
        # Past the guard that makes reads unchangeable.
        own = self.__dict__
        own["time"], own["names"], own["told"] = time, names, told

    @cached_property
    def label(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.names[1:2])

    @cached_property
    def alpha(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.told[:1])

    @cached_property
    def weight(self) -> Tensor:
        """(1, k) ones."""
        return torch.ones(1, 1).expand(1, len(self.names[0]))

    @cached_property
    def score(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.told[2:])

    @cached_property
    def group(self) -> Tensor:
        """(1, k) each cell's own place."""
        return torch.arange(len(self.names[0]))[None]

    @property
    def strength(self) -> Tensor:
        """(1, k)."""
        return self.alpha

    @cached_property
    def cosine(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.told[1:2])

    @cached_property
    def age(self) -> Tensor:
        """(1, k)."""
        return tensor((self.time + 1 - self.names[2]).astype(np.int32))
