"""Faster ways to read and write a labeled memory with the same results, and when they are taken.

One stream on a CPU goes through compiled kernels, many streams on a GPU through fused ones; and
where there is an index a read looks at the cells near h only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem.engines.triton import FUSED_MOST, fused
from labelmem.fast import Array, addressable, alone, compiled, row, tensor
from labelmem.index.cell_index import CellIndex
from labelmem.index.near import NearRead
from labelmem.memory.rows import RowWays
from labelmem.reading import LabelPast, LoneRead, MemoryRead
from labelmem.trust import recording

if TYPE_CHECKING:
    from labelmem.engines.numba.cells import CompiledCells, CompiledRead
    from labelmem.engines.numba.grouped import GroupedCells

__all__ = ["ShortWays"]


class ShortWays(RowWays):
    """Cells with other ways to read and write them."""

    _kept: CompiledCells | None = None
    """What kernels know of one stream's cells on a CPU, each the only one of its label."""
    _grouped: GroupedCells | None = None
    """The same where a label may own several."""
    _index: CellIndex | None = None

    def _take_short_ways(self) -> None:
        """From now on; before the first write."""
        self.fast, index = True, self.config.index
        simple = self.config.cells_per_label == 1 and self.blocks is None
        if index and simple and CellIndex.fits(self.v):
            self._index = CellIndex(index)

    def _alone(self, h: Tensor) -> bool:
        """Whether compiled kernels can take ``h``: it is one stream's, on a CPU."""
        return self.fast and h.dtype == self.alpha.dtype and alone(h)

    def _compiled(self, h: Tensor) -> bool:
        """Whether compiled kernels do all there is to do for ``h``, which is alone."""
        single = self._index is None and self.config.cells_per_label == 1
        return single and compiled(h.dtype == torch.float32)

    def _swift(self, h: Tensor) -> CompiledCells | None:
        """The cells as kernels know them, if they are as they were and can take ``h`` as it is.

        One look at what decides that, in place of many: at small sizes they take longer than all
        the rest.
        """
        known = self._kept
        if known is None or known.tensor is not self.v:
            return None
        return known if addressable(h) and h.shape == known.shape else None

    def _fused(self, h: Tensor) -> bool:
        """Whether ``h`` is read and written by fused kernels: many streams on a GPU."""
        single = self.config.cells_per_label == 1 and self.fast and self.dim is not None
        single = single and not self._narrow
        fits = 0 < max(self.label.shape[1], self.v.shape[2]) <= FUSED_MOST
        return single and fits and fused(h, self.v) and not h.requires_grad

    def _read_one(self, h: Tensor, lam: float, delta: float) -> MemoryRead | None:
        """The read of one stream on a CPU; None if it is the reference's."""
        if self._index is not None and self._index.covers(self._filled):
            pool = self._index.pool(self._cells, self._filled)
            seen = pool.read(row(h), self._index.config.probes, lam, delta)
            return NearRead(int(self.time), *seen)
        if self.config.cells_per_label == 1:
            return self._compiled_cells().read(row(h), lam, delta)
        if self._narrow or len(self.blocks or ()) > 1:
            return None
        return self._read_grouped(self._grouped_cells(), h, lam, delta)

    def _read_grouped(self, cells: GroupedCells, h: Tensor, lam: float, delta: float) -> MemoryRead:
        """The same where a label may own several cells."""
        read = cells.read(row(h), lam, delta)
        if self.blocks is None:
            return read
        age = self.time[:, None] - self.written[:, : self._filled] + 1
        return read.with_past(*self._came(self._groups(self._filled), age))

    def read_one(self, key: Array) -> CompiledRead:
        """The read by kernels of one stream's cells, each the only one of its label."""
        lam, delta = float(self.config.lam), float(self.config.delta)
        return self._compiled_cells().read(key, lam, delta)

    def make_room(self, cells: int) -> None:
        """Make sure that there are positions for so many cells."""
        self._grow(cells)

    def _read_many(self, h: Tensor, lam: float, delta: float) -> MemoryRead:
        """The read of many streams on a GPU."""
        from labelmem.engines.triton.memory import read_many
        from labelmem.engines.triton.past import block_cosines, past_of

        k, past = self._filled, None
        cells = self._cells() | {"used": self.used, "time": self.time}
        parts = () if self.blocks is None else tuple(self.blocks) or (h.shape[1],)
        cosine, own, size = block_cosines(self.v, self.used, k, h, parts)
        label, alpha, weight, score, age = read_many(cells, k, cosine, lam, delta)
        if self.blocks is not None:
            writes, first, rates = past_of(cells, self.time, self._fades, k)
            past = LabelPast(writes, age, first, rates, own, size)
        return LoneRead(label, alpha, weight, score, self._groups(k), alpha, cosine, age, past)

    def _read_swift(self, h: Tensor) -> MemoryRead | None:
        """The read of cells that kernels know, all as configured; None if there is more to it."""
        index, grouped = self._index, self._grouped
        lam, delta = float(self.config.lam), float(self.config.delta)
        if grouped is not None:
            fits = grouped.tensor is self.v and addressable(h) and h.shape == grouped.shape
            return self._read_grouped(grouped, h, lam, delta) if fits else None
        known = self._swift(h)
        if known is None or index is None or not index.covers(self._filled):
            return None if known is None else known.read_there(h, lam, delta)
        if index.ready is None:
            return None
        seen = index.ready.read_there(h, index.config.probes, lam, delta)
        return NearRead(int(known.time[0]), *seen)

    def _compiled_cells(self) -> CompiledCells:
        """The cells as compiled kernels see them."""
        known = self._kept
        if known is None or not known.are(self.v):
            from labelmem.engines.numba.cells import CompiledCells

            own = (self.used, self.time, self.config, self._fades, self.blocks, known)
            known = self._kept = CompiledCells(self._cells(), *own)
        return known

    def _grouped_cells(self) -> GroupedCells:
        """The same where a label may own several."""
        known = self._grouped
        if known is None:
            from labelmem.engines.numba.grouped import GroupedCells

            known = self._grouped = GroupedCells(self._cells(), self.time, self._filled)
        elif known.tensor is not self.v:  # the memory has grown
            known.attach(self._cells())
        return known

    def _let_go(self) -> GroupedCells | None:
        """Cells are about to change by the reference's rules: reads that are held get copies.

        What kernels know of several cells per label is returned, to be brought up to date.
        """
        kept, grouped, rows = self._kept, self._grouped, self._rows
        self._kept = self._grouped = self._rows = None
        for known in (kept, grouped, rows):
            if known is not None:
                known.settle()
        if self._index is not None:
            self._index.forget_lists()
        return grouped

    def _write_compiled(self, h: Tensor, y: Tensor, P: Tensor | None) -> Tensor | None:
        """The write of one stream on a CPU, compiled; None if it must be looked at closely."""
        cells = self._swift(h)
        if cells is None:
            if not self._alone(h) or h.shape != (1, self.dim) or self.config.cells_per_label != 1:
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
            self._index.follow(cells.told_to_index(), self._filled, place, grown)
        return torch.from_numpy(np.array([place >= 0]))

    def _write_many(
        self, h: Tensor, y: Tensor, P: Tensor | None, seen: Tensor, highest: Tensor | None
    ) -> Tensor:
        """The same for many streams on a GPU."""
        from labelmem.engines.triton.memory import write_many

        if not recording():
            self._make_positions()
        cells = self._cells() | {"used": self.used, "time": self.time}
        return write_many(cells, self._filled, h, y, P, seen, self.config, self._fades, highest)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved to continue bit for bit, without the spare positions."""
        saved = super().tensors()
        return saved if self._index is None else saved | self._index.tensors(self._filled)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave; shapes must fit."""
        super().restore(tensors)
        self._kept = self._grouped = self._rows = None
        if self._index is not None:
            self._index.restore(tensors)


def _ordinary(P: Tensor) -> bool:
    """Whether nothing about the prediction of one stream must be looked at closely."""
    return len(P) == 1 and P.ndim == 2 and not P.requires_grad and P.dtype is torch.float32
