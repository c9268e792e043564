"""What a compiled read of some of one stream's cells tells, each the only one of its label."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import Array, once, places, tensor
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

    @property
    def lead(self) -> Array | slice:
        """All cells lead."""
        return slice(None)

    @once
    def label(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.names[1:2])

    @once
    def alpha(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.told[:1])

    @once
    def weight(self) -> Tensor:
        """(1, k) ones."""
        return torch.ones(1, 1).expand(1, len(self.names[0]))

    @once
    def score(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.told[2:])

    @once
    def group(self) -> Tensor:
        """(1, k) each cell's own place."""
        return tensor(places(len(self.names[0])))

    @property
    def strength(self) -> Tensor:
        """(1, k)."""
        return self.alpha

    @once
    def cosine(self) -> Tensor:
        """(1, k)."""
        return torch.from_numpy(self.told[1:2])

    @once
    def age(self) -> Tensor:
        """(1, k)."""
        return tensor((self.time + 1 - self.names[2]).astype(np.int32))
