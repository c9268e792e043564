"""Shorter ways of a labeled memory with the same results, and when they are taken.

One stream on a CPU goes through numpy or compiled kernels, which know more of the cells than
tensors tell; many streams on a GPU go through fused kernels; and where there is an index a read
looks at the cells near h only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import Array, addressable, alone, answer, array, compiled, row, tensor
from labelmem.fast.cells import Kept, OneStream
from labelmem.fast.mix import margin_lost
from labelmem.fast.read import read_one
from labelmem.index.cell_index import CellIndex
from labelmem.index.near import NearRead
from labelmem.index.read import Some, read_some
from labelmem.kernels import FUSED_MOST, fused
from labelmem.memory.writes import WriteRules
from labelmem.reading import LabelPast, LoneRead, MemoryRead
from labelmem.trust import recording

if TYPE_CHECKING:
    from labelmem.compiled.cells import CompiledCells
    from labelmem.compiled.grouped import GroupedCells

__all__ = ["ShortWays"]


class ShortWays(WriteRules):
    """Cells with other ways to read and write them."""

    fast = False
    """Whether they are taken where there are any."""
    _kept: Kept | CompiledCells | None = None
    """What one stream on a CPU knows of its cells, in numpy or compiled."""
    _index: CellIndex | None = None

    def _take_short_ways(self) -> None:
        """From now on; before the first write."""
        self.fast = True
        indexed = self.config.index if CellIndex.fits(self.v) else None
        self._index = CellIndex(indexed) if indexed else None

    def _alone(self, h: Tensor) -> bool:
        """Whether ``h`` can take the short way of one stream on a CPU."""
        return self.fast and h.dtype == self.alpha.dtype and alone(h)

    def _lone(self, h: Tensor) -> bool:
        """Whether compiled kernels know the cells: each is the only one of its label."""
        return compiled(self.config.cells_per_label == 1 and h.dtype == torch.float32)

    def _compiled(self, h: Tensor) -> bool:
        """Whether compiled kernels do all there is to do for ``h``, which is alone."""
        return self._index is None and self._lone(h)

    def _swift(self, h: Tensor) -> CompiledCells | None:
        """The cells as kernels know them, if they are as they were and can take ``h`` as it is.

        One look at what decides that, in place of many: at small sizes they take longer than all
        the rest.
        """
        known = self._kept
        if known is None or isinstance(known, Kept) or known.tensor is not self.v:
            return None
        return known if addressable(h) and h.shape == known.shape else None

    def _fused(self, h: Tensor) -> bool:
        """Whether ``h`` is read and written by fused kernels: many streams on a GPU."""
        single = self.config.cells_per_label == 1 and self.fast and self.dim is not None
        single = single and not self._narrow
        fits = 0 < max(self.label.shape[1], self.v.shape[2]) <= FUSED_MOST
        return single and fits and fused(h, self.v) and not h.requires_grad

    def _read_one(self, h: Tensor, lam: float, delta: float) -> MemoryRead | None:
        """The read of one stream on a CPU; None if the specification's is faster."""
        grouped = compiled(self.config.cells_per_label != 1 and h.dtype == torch.float32)
        kept = self._kept if grouped and isinstance(self._kept, Kept) else None
        known = None if kept is None else kept.grouped
        if known is None or not known.are(self.v):
            one = self._one_stream()
            if not (one.whole if grouped else one.readable):
                return None
            if not grouped:
                watched = self.blocks is not None
                return read_one(one, array(h)[0], lam, delta, int(self.time), watched)
            known = self._grouped_cells(one)
        return known.read(row(h), self._filled, self.time, lam, delta)

    def _grouped_cells(self, one: OneStream) -> GroupedCells:
        """The cells as compiled kernels see them where a label may own several."""
        from labelmem.compiled.grouped import GroupedCells

        known = one.kept.grouped = GroupedCells(one, self.v, self.blocks is not None)
        return known

    def _read_many(self, h: Tensor, lam: float, delta: float) -> MemoryRead:
        """The read of many streams on a GPU."""
        from labelmem.kernels.memory import read_many
        from labelmem.kernels.past import block_cosines, past_of

        k, past = self._filled, None
        cells = self._cells() | {"used": self.used, "time": self.time}
        parts = () if self.blocks is None else tuple(self.blocks) or (h.shape[1],)
        cosine, own, size = block_cosines(self.v, self.used, k, h, parts)
        label, alpha, weight, score, age, best = read_many(cells, k, cosine, lam, delta)
        if self.blocks is not None:
            writes, first, rates = past_of(cells, self.time, self._fades, k)
            past = LabelPast(writes, age, first, rates, own, size)
        told = (self._groups(k), alpha, cosine, age, past, best)
        return LoneRead(label, alpha, weight, score, *told)

    def _read_near(self, index: CellIndex, h: Array, lam: float, delta: float) -> MemoryRead:
        """The read of the cells near ``h`` (d,) only."""
        own, cells = self.config.cells_per_label == 1, self._cells
        if own and self.blocks is None:
            pool = index.pool(cells, self._filled)
            if pool is not None:
                return NearRead(int(self.time), *pool.read(h, index.config.probes, lam, delta))
        at, cosine = index.near(cells(), self._filled, h)
        some = Some(cells(), at, cosine, own, int(self.time), self._fades, self.blocks)
        return read_some(some, h, lam, delta)

    def _read_swift(self, h: Tensor) -> MemoryRead | None:
        """The read of cells that kernels know, all as configured; None if there is more to it."""
        kept, index = self._kept, self._index
        lam, delta = float(self.config.lam), float(self.config.delta)
        if isinstance(kept, Kept):
            grouped = kept.grouped
            if grouped is None or index is not None or not addressable(h):
                return None
            if grouped.tensor is not self.v or h.shape != grouped.shape:
                return None
            return grouped.read(row(h), self._filled, self.time, lam, delta)
        known = self._swift(h)
        if known is None or index is None or not index.covers(self._filled):
            return None if known is None else known.read_there(h, lam, delta)
        pool = None if known.watched else index.ready
        if pool is None:
            return None
        seen = pool.read_there(h, index.config.probes, lam, delta)
        return NearRead(int(known.time[0]), *seen)

    def _compiled_cells(self) -> CompiledCells:
        """The cells as compiled kernels see them."""
        known = self._kept
        if known is None or isinstance(known, Kept) or not known.are(self.v):
            from labelmem.compiled.cells import CompiledCells

            before = known if isinstance(known, CompiledCells) else None  # the memory has grown
            own = (self.used, self.time, self.config, self._fades, self.blocks, before)
            known = self._kept = CompiledCells(self._cells(), *own)
        return known

    def _one_stream(self) -> OneStream:
        """The cells as one stream on a CPU has them."""
        cells, blocks = self._cells(), self.blocks or ()
        kept = self._kept if isinstance(self._kept, Kept) else None
        one = OneStream(cells, self._filled, self.config, self._fades, blocks, kept)
        self._kept = one.kept
        return one

    def _write_compiled(self, h: Tensor, y: Tensor, P: Tensor | None) -> Tensor | None:
        """The write of one stream on a CPU, compiled; None if it must be looked at closely."""
        cells = self._swift(h)
        if cells is None:
            if not self._alone(h) or h.shape != (1, self.dim) or not self._lone(h):
                return None
            cells, h = self._compiled_cells(), tensor(row(h))
        label = y.item() if y.shape == (1,) and y.dtype is torch.int64 else -1
        if label < 0 or not (P is None or _ordinary(P)):
            return None
        if self._filled == cells.room:
            self._grow(min(self._filled + 1, self.config.capacity or self._filled + 1))
            cells = self._compiled_cells()
        if P is not None:
            decides = self.config.margin != math.inf
            P = None if not decides else P if addressable(P) else tensor(row(P))
        place = cells.write(h, int(label), P)
        if place < -1:
            return None
        grown, self._filled = place >= self._filled, max(self._filled, place + 1)
        if self._index is not None and place >= 0:
            told = cells.told_to_index()
            if not self._index.follow_one(told, self._filled, place, grown):
                self._index.follow(self._cells(), self._filled, np.array([place]), grown)
        return answer(place >= 0)

    def _write_one(self, h: Tensor, y: Tensor, P: Tensor | None, mask: Tensor | None) -> Tensor:
        """The write of one stream on a CPU."""
        if mask is not None and not bool(mask):
            return torch.zeros(1, dtype=torch.bool)
        self.time += 1
        label, lost, wrong = int(y), True, True
        if P is None:
            wrong = False  # nothing was believed, so nothing was wrong
        elif self.config.margin != math.inf or self.config.cells_per_label != 1:
            lost, wrong = margin_lost(array(P)[0], label, self.config.margin)
        if lost:
            self._grow(min(self._filled + 1, self.config.capacity or self._filled + 1))
            one = self._one_stream()
            one.write(array(h)[0], label, wrong, int(self.time))
            before, self._filled = self._filled, one.used
            self.used.fill_(one.used)
            self._follow(before)
        return torch.full((1,), lost)

    def _write_many(
        self, h: Tensor, y: Tensor, P: Tensor | None, seen: Tensor, highest: Tensor | None
    ) -> Tensor:
        """The same for many streams on a GPU."""
        from labelmem.kernels.memory import write_many

        if not recording():
            self._make_positions()
        cells = self._cells() | {"used": self.used, "time": self.time}
        return write_many(cells, self._filled, h, y, P, seen, self.config, self._fades, highest)

    def _follow(self, before: int) -> None:
        """Let the index know of the latest write of one stream, which had ``before`` cells."""
        if self._index is not None and self._index.covers(self._filled):
            written = array(self.written)[0, : self._filled] == int(self.time)
            grown = self._filled > before
            self._index.follow(self._cells(), self._filled, np.flatnonzero(written), grown)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved to continue bit for bit, without the spare positions."""
        saved = super().tensors()
        return saved if self._index is None else saved | self._index.tensors(self.v, self._filled)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave; shapes must fit."""
        super().restore(tensors)
        self._kept = None
        if self._index is not None:
            self._index.restore(tensors)


def _ordinary(P: Tensor) -> bool:
    """Whether nothing about the prediction of one stream must be looked at closely."""
    return len(P) == 1 and P.ndim == 2 and not P.requires_grad and P.dtype is torch.float32
