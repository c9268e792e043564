"""What a read of one stream's cells by kernels tells, each cell the only one of its label.

A read computes what every step needs, the scores, and copies nothing: the rest is told when someone
asks for it. Before a write changes the cells, reads that are still held get their copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import Array, once, places, tensor
from labelmem.reading import LabelPast, MemoryRead

if TYPE_CHECKING:
    from labelmem.compiled.cells import CompiledCells

__all__ = ["CompiledRead", "Moment"]

_TOLD = ("label", "alpha", "written")
_WATCHED = ("born", "writes", "rates", "size")


class Moment:
    """The cells between two writes: the cells themselves, until something is about to change."""

    __slots__ = ("__weakref__", "cells", "kept", "time", "used")

    def __init__(self, cells: CompiledCells, used: int) -> None:
        self.cells, self.used = cells, used
        self.time = int(cells.time[0])
        self.kept: dict[str, Array] = {}

    def copy_of(self, name: str) -> Array:
        """(K, …) what the cells have of this kind, copied; made once."""
        if name not in self.kept:
            self.kept[name] = getattr(self.cells, name)[: self.used].copy()
        return self.kept[name]

    def keep(self) -> None:
        """Copy all that reads tell: it is about to change."""
        for name in _TOLD + (_WATCHED if self.cells.watched else ()):
            self.copy_of(name)


class CompiledRead(MemoryRead):
    """What a read by kernels saw. The scores are there; the rest is made when it is asked for.

    Parameters
    ----------
    moment
        The cells as they were.
    seen
        (2, K) cosines of h with the cells, and Eq. 3's s.
    parts
        (K, B) cosines of each block of h; None where there is but one.
    """

    lone = True
    compiled = True
    moment: Moment
    seen: Array

    def __init__(self, moment: Moment, seen: Array, parts: Array | None) -> None:
        # Past the guard that makes reads unchangeable: it costs as much as reading a few cells.
        own = self.__dict__
        own["moment"], own["seen"] = moment, seen
        if parts is not None:
            own["parts"] = parts

    @property
    def scores_of_cells(self) -> Array:
        """(K,) Eq. 3's s."""
        scores: Array = self.seen[1]
        return scores

    @once
    def parts(self) -> Array:
        """(K, B) cosines of each block of h."""
        whole: Array = self.seen[0, :, None]
        return whole

    def told(self, name: str) -> Array:
        """(K, …) what the cells had of this kind; not to be kept, as it may be theirs."""
        moment = self.moment
        kept = moment.kept.get(name)
        seen: Array = getattr(moment.cells, name)[: moment.used] if kept is None else kept
        return seen

    @property
    def lead(self) -> Array | slice:
        """All cells lead."""
        return slice(None)

    @once
    def label(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("label"))

    @once
    def alpha(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("alpha"))

    @once
    def weight(self) -> Tensor:
        """(1, K) ones: each cell is the only one of its label."""
        return torch.ones(1, 1).expand(1, self.moment.used)

    @once
    def score(self) -> Tensor:
        """(1, K)."""
        return torch.from_numpy(self.seen[1:])

    @once
    def group(self) -> Tensor:
        """(1, K) each cell's own position."""
        return tensor(places(self.moment.used))

    @property
    def strength(self) -> Tensor:
        """(1, K)."""
        return self.alpha

    @once
    def cosine(self) -> Tensor:
        """(1, K)."""
        return torch.from_numpy(self.seen[:1])

    @once
    def age(self) -> Tensor:
        """(1, K)."""
        return tensor((self.moment.time + 1 - self.moment.copy_of("written")).astype(np.int32))

    @once
    def past(self) -> LabelPast | None:
        """How the labels came so far, where the memory was asked to tell."""
        cells = self.moment.cells
        if not cells.watched:
            return None
        kept = {name: self.moment.copy_of(name) for name in ("written", *_WATCHED)}
        gone = np.maximum(self.moment.time - kept["written"], 0).astype(np.float32)
        return LabelPast(
            writes=tensor(kept["writes"]),
            age=self.age,
            since_first=tensor((self.moment.time + 1 - kept["born"]).astype(np.int32)),
            rates=tensor(np.exp(cells.log_fades * gone[:, None]) * kept["rates"]),
            cosine=tensor(self.parts),
            size=tensor(kept["size"]),
        )
