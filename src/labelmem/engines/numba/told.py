"""What a read of one stream's cells by kernels tells, each cell the only one of its label.

A read computes what every step needs, the scores, and copies nothing: other fields are computed
lazily. Before a write changes the cells, reads that are still held get their copies.
"""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import Array, array, tensor
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["CompiledRead", "Moment", "Told"]


class _Left(NamedTuple):
    """What a copied read still knows of cells that it no longer looks at."""

    told: tuple[str, ...]
    watched: bool
    log_fades: Array


class Moment:
    """The cells between two writes: the cells themselves, until something is about to change."""

    __slots__ = ("__weakref__", "cells", "kept", "time", "used")

    def __init__(self, cells: Told, used: int) -> None:
        self.cells: Any = cells
        self.used, self.time = used, int(cells.time[0])
        self.kept: dict[str, Array] = {}

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Copies have all that reads tell: the cells of a copied memory are not found from here."""
        cells = self.cells
        for name in cells.told:
            self.copy_of(name)
        left = _Left(cells.told, cells.watched, cells.log_fades)
        return None, {"cells": left, "kept": self.kept, "time": self.time, "used": self.used}

    def copy_of(self, name: str) -> Array:
        """(K, …) what the cells have of this kind, copied; made once."""
        if name not in self.kept:
            self.kept[name] = getattr(self.cells, name)[: self.used].copy()
        return self.kept[name]

    def view_of(self, name: str) -> Array:
        """(K, …) the same, not to be kept: it may be the cells' own."""
        kept = self.kept.get(name)
        seen: Array = getattr(self.cells, name)[: self.used] if kept is None else kept
        return seen


class Told:
    """One stream's cells as arrays that reads look at until a write is about to change them."""

    # There may be very many streams, and each has one of these.
    __slots__ = ("_now", "time")

    time: Array
    """(1,) the time of the latest observation."""
    watched = False
    """Whether reads tell how the labels came so far."""
    log_fades = np.empty(0, np.float32)
    """By which the rates of writes fade."""

    def __init__(self) -> None:
        self._now: weakref.ref[Moment] | None = None

    def __reduce__(self) -> Any:
        """No copy of it looks at the bytes of the copied memory, so that is found out anew."""
        return type(None), ()

    @property
    def told(self) -> tuple[str, ...]:
        """The arrays that reads tell."""
        raise NotImplementedError

    def moment(self, used: int) -> Moment:
        """The cells since the latest write."""
        moment = None if self._now is None else self._now()
        if moment is None:
            moment = Moment(self, used)
            self._now = weakref.ref(moment)
        return moment

    def settle(self) -> None:
        """Something is about to change the cells: reads that are still held get their copies."""
        moment = None if self._now is None else self._now()
        self._now = None
        if moment is not None:
            for name in self.told:
                moment.copy_of(name)


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

    @cached_property
    def parts(self) -> Array:
        """(K, B) cosines of each block of h."""
        whole: Array = self.seen[0, :, None]
        return whole

    def at_cells(self, values: Array) -> Tensor:
        """Values (K,) as a tensor (1, K)."""
        return tensor(values)

    def of_leading(self, values: Tensor) -> Array:
        """The other way round."""
        found: Array = array(values)[0]
        return found

    def told(self, name: str) -> Array:
        """(K, …) what the cells had of this kind; not to be kept, as it may be theirs."""
        return self.moment.view_of(name)

    @cached_property
    def label(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("label"))

    @cached_property
    def alpha(self) -> Tensor:
        """(1, K)."""
        return tensor(self.moment.copy_of("alpha"))

    @cached_property
    def weight(self) -> Tensor:
        """(1, K) ones: each cell is the only one of its label."""
        return torch.ones(1, 1).expand(1, self.moment.used)

    @cached_property
    def score(self) -> Tensor:
        """(1, K)."""
        return torch.from_numpy(self.seen[1:])

    @cached_property
    def group(self) -> Tensor:
        """(1, K) each cell's own position."""
        return torch.arange(self.moment.used)[None]

    @property
    def strength(self) -> Tensor:
        """(1, K)."""
        return self.alpha

    @cached_property
    def cosine(self) -> Tensor:
        """(1, K)."""
        return torch.from_numpy(self.seen[:1])

    @cached_property
    def age(self) -> Tensor:
        """(1, K)."""
        return tensor((self.moment.time + 1 - self.moment.copy_of("written")).astype(np.int32))

    @cached_property
    def past(self) -> LabelPast | None:
        """How the labels came so far, where the memory was asked to tell."""
        cells = self.moment.cells
        if not cells.watched:
            return None
        kept = {
            name: self.moment.copy_of(name)
            for name in ("written", "born", "writes", "rates", "size")
        }
        gone = np.maximum(self.moment.time - kept["written"], 0).astype(np.float32)
        return LabelPast(
            writes=tensor(kept["writes"]),
            age=self.age,
            since_first=tensor((self.moment.time + 1 - kept["born"]).astype(np.int32)),
            rates=tensor(np.exp(cells.log_fades * gone[:, None]) * kept["rates"]),
            cosine=tensor(self.parts),
            size=tensor(kept["size"]),
        )
