"""Many streams' cells as their kernels see them, and what a read of them tells.

The memory's tensors are the truth. What is kept beside them, lengths of cells and tables of places,
can be found anew at any step.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.engines.numba.cells import bounds_of, log_fades_of
from labelmem.engines.numba.places import table_size
from labelmem.engines.numba.rows import Mixture, Rows, measure_rows, read_rows, write_rows
from labelmem.engines.numba.threads import spread
from labelmem.fast import Array, array
from labelmem.narrow import UNIT
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["RowCells", "RowMoment", "RowRead"]

_TOLD = ("alpha", "label", "written", "born", "writes", "rates", "size")


class RowMoment:
    """The cells between two writes.

    One write changes one cell of a stream at most. What these were before is all that is copied,
    until there is another write.
    """

    def __init__(self, rows: Rows, filled: int) -> None:
        self.rows, self.filled = rows, filled
        self.used, self.time = rows.used.copy(), rows.time.copy()
        self._before: tuple[Array, tuple[Array, ...]] | None = None
        self._kept: dict[str, Array] = {}

    def changed(self, cells: Array, before: tuple[Array, ...]) -> None:
        """A write has changed these ``cells`` (n,), -1 for none, which held ``before``."""
        self._before = cells, before

    def keep(self) -> None:
        """The cells are about to change in any way."""
        for name in _TOLD:
            self.copy_of(name)

    def copy_of(self, name: str) -> Array:
        """(n, K, …) what the cells had of this kind, copied; made once."""
        if name not in self._kept:
            copied = getattr(self.rows, name)[:, : self.filled].copy()
            if self._before is not None and copied.size:
                cells, before = self._before
                (stream,) = np.nonzero((cells >= 0) & (cells < self.filled))
                copied[stream, cells[stream]] = before[_TOLD.index(name)][stream]
            self._kept[name] = copied
        return self._kept[name]

    def view_of(self, name: str) -> Array:
        """(n, K or more, …) the same, not to be kept: it may be the cells' own."""
        if self._before is None and name not in self._kept:
            own: Array = getattr(self.rows, name)
            return own
        return self.copy_of(name)


class RowRead(MemoryRead):
    """What a read by kernels saw of many streams. All but the scores is made when asked for."""

    lone = True
    moment: RowMoment
    scores_of_cells: Array
    """(n, K) Eq. 3's s."""
    cosines: Array
    parts: Array
    """(n, K, B) cosines of each block of h; no rows where there is but one."""

    def __init__(self, moment: RowMoment, cosines: Array, parts: Array, scores: Array) -> None:
        # Past the guard that makes reads unchangeable.
        own = self.__dict__
        own |= {"moment": moment, "cosines": cosines, "parts": parts, "scores_of_cells": scores}

    label = cached_property(lambda self: self._copy_of("label"))
    alpha = cached_property(lambda self: self._copy_of("alpha"))
    strength = cached_property(lambda self: self.alpha)
    score = cached_property(lambda self: torch.from_numpy(self.scores_of_cells))
    cosine = cached_property(lambda self: torch.from_numpy(self.cosines))
    weight = cached_property(lambda self: (self.label >= 0).to(self.alpha))
    group = cached_property(lambda self: torch.arange(self.moment.filled).expand_as(self.label))
    age = cached_property(lambda self: self._since("written"))

    @cached_property
    def past(self) -> LabelPast | None:
        """How the labels came so far, where the memory was asked to tell."""
        rows = self.moment.rows
        if not len(rows.log_fades):  # they are kept where somebody asks
            return None
        gone = (self.age - 1).clamp(min=0)[..., None]
        rates = self._copy_of("rates") * (torch.from_numpy(rows.log_fades) * gone).exp()
        cosine = torch.from_numpy(self.parts) if len(self.parts) else self.cosine[..., None]
        told = (self._copy_of("writes"), self.age, self._since("born"), rates, cosine)
        return LabelPast(*told, self._copy_of("size"))

    def _copy_of(self, name: str) -> Tensor:
        return torch.from_numpy(self.moment.copy_of(name))

    def _since(self, name: str) -> Tensor:
        """(n, K) observations since then."""
        return torch.from_numpy(self.moment.time[:, None] + 1 - self.moment.copy_of(name))


class RowCells:
    """The cells of n streams, one for each label, as arrays over the bytes of the tensors.

    Parameters
    ----------
    tensors
        The memory's tensors by name, with ``used`` and ``time``.
    fades
        The factors by which the rates of writes fade.
    blocks
        Lengths of the blocks of h that are compared for themselves; None if nobody asks.
    before
        The same cells before the memory made room for more: what it knew of them holds.
    """

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        config: MemoryConfig,
        fades: Tensor,
        blocks: Sequence[int] | None,
        before: RowCells | None = None,
    ) -> None:
        own = {name: array(x) for name, x in tensors.items() if name != "group"}
        n, room = own["label"].shape
        dim = own["v"].shape[2] - (UNIT if config.cell_bits else 0)
        bounds = bounds_of(tuple(blocks or (dim,)))
        own["known"] = np.zeros((n, 2, room), np.float32)
        own["size"] = np.zeros((n, 0 if blocks is None else room, len(bounds) - 1), np.float32)
        own["table"] = np.full((n, table_size(room)), -1, np.int32)
        self.config, self._tensors, self._stamp = config, tensors, _stamp(tensors)
        self._now: weakref.ref[RowMoment] | None = None
        self._older: weakref.ref[RowMoment] | None = None
        own |= {"bounds": bounds, "log_fades": log_fades_of(tuple(fades.tolist()))}
        self.rows, self.room = Rows(**own), room
        if before is not None and self._takes_over(before.rows):
            return
        spread(measure_rows, n, room * dim, self.rows)

    def __reduce__(self) -> Any:
        """No copy of it looks at the bytes of the copied memory, so that is found out anew."""
        return type(None), ()

    def _takes_over(self, old: Rows) -> bool:
        """Copy what was known of fewer cells, unless their tables were shorter."""
        if old.table.shape != self.rows.table.shape:
            return False
        held = old.label.shape[1]
        self.rows.known[:, :, :held], self.rows.table[:] = old.known, old.table
        self.rows.size[:, :held] = old.size
        return True

    def are(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether these are still the memory's cells, and nobody else has changed them."""
        return self._stamp == _stamp(tensors)

    def now(self) -> RowMoment | None:
        """The cells since the latest write, if anybody has read them since."""
        return None if self._now is None else self._now()

    def still(self, moment: RowMoment) -> bool:
        """Whether no label was learned since; also of a copy, whose moments are others."""
        return moment is self.now() or np.array_equal(moment.time, self.rows.time)

    def settle(self) -> None:
        """The cells are about to change in any way: reads that are still held get their copies."""
        for held in (self._now, self._older):
            moment = None if held is None else held()
            if moment is not None:
                moment.keep()
        self._now = self._older = None

    def read(self, key: Array, filled: int, lam: float, delta: float) -> RowRead:
        """Eq. 2 and 3 for ``key`` (n, d) over the first ``filled`` positions."""
        (n, dim), blocks = key.shape, len(self.rows.bounds) - 1
        cosine, score = (np.empty((n, filled), np.float32) for _ in range(2))
        parts = np.empty((n if blocks > 1 else 0, filled, blocks), np.float32)
        seen = (self.rows, key, lam, delta, cosine, parts, score)
        spread(read_rows, n, filled * dim, *seen)
        moment = self.now()
        if moment is None:
            moment = RowMoment(self.rows, filled)
            self._now = weakref.ref(moment)
        return RowRead(moment, cosine, parts, score)

    def write(self, key: Array, y: Array, mask: Array, of: Mixture, P: Array) -> None:
        """Learn that the labels of ``key`` (n, d) were ``y`` (n,), in the streams of the mask.

        ``P`` (n, W) is what was predicted; without rows it is made of the mixture if need be.
        """
        older = None if self._older is None else self._older()
        if older is not None:
            older.keep()
        (n, dim), config = key.shape, self.config
        cells = np.empty(n, np.int64)
        before = tuple(_like(getattr(self.rows, name)) for name in _TOLD)
        rules = (config.margin, config.decay, config.capacity or 0, config.evict == "oldest")
        each = dim + (P.shape[1] if config.margin < np.inf else 0)
        spread(write_rows, n, each, self.rows, key, y, mask, of, P, *rules, cells, before)
        moment = self.now()
        if moment is not None:
            moment.changed(cells, before)
        self._older, self._now = self._now, None


def _like(cells: Array) -> Array:
    """Room for one cell of each stream."""
    return np.empty((len(cells), *cells.shape[2:]), cells.dtype)


def _stamp(tensors: Mapping[str, Tensor]) -> list[tuple[int, int]]:
    """Which tensors they are, and how often torch has changed them."""
    return [(id(x), 0 if x.is_inference() else x._version) for x in tensors.values()]
