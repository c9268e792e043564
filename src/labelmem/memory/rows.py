"""Reads and writes of many streams on a CPU by compiled kernels: see ``engines/numba/many.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from labelmem.fast import Array, addressable, array
from labelmem.memory.writes import WriteRules
from labelmem.trust import recording

if TYPE_CHECKING:
    from labelmem.engines.numba.row_cells import RowCells, RowRead
    from labelmem.engines.numba.rows import Mixture

__all__ = ["RowWays"]


class RowWays(WriteRules):
    """Cells of many streams that kernels may take, a range of streams at a time."""

    fast = False
    """Whether shorter ways are taken where there are any."""
    _rows: RowCells | None = None
    """What kernels know of the cells, each the only one of its label."""

    def rows(self, key: Tensor) -> RowCells | None:
        """The cells as kernels see them; None where these cannot take ``key`` (n, d)."""
        config = self.config
        single = config.cells_per_label == 1 and config.index is None
        if not (single and self.fast and self.dim and key.shape == (self.streams, self.dim)):
            return None
        if not addressable(key) or recording():
            return None
        if self._rows is None or not self._rows.are(self._tensors()):
            self._rows = self._seen()
        return self._rows

    def read_rows(self, cells: RowCells, key: Tensor) -> RowRead:
        """Eq. 2 and 3 for ``key`` (n, d); ``cells`` are those of :meth:`rows`."""
        lam, delta = float(self.config.lam), float(self.config.delta)
        return cells.read(array(key), self._filled, lam, delta)

    def write_rows(
        self, cells: RowCells, key: Tensor, y: Tensor, mask: Array, of: Mixture, P: Array
    ) -> None:
        """Learn that the labels of ``key`` were ``y`` (n,), after predicting what ``of`` mixes.

        ``P`` (n, W) is that prediction, or has no rows if nobody asked for it.
        """
        room = min(self._filled + 1, self.config.capacity or self._filled + 1)
        if room > cells.room:
            self._grow(room)
            cells = self._rows = self._seen(cells)
        cells.write(array(key), array(y), mask, of, P)
        self._filled = int(cells.rows.used.max())

    def _tensors(self) -> dict[str, Tensor]:
        return self._cells() | {"used": self.used, "time": self.time}

    def _seen(self, before: RowCells | None = None) -> RowCells:
        from labelmem.engines.numba.row_cells import RowCells

        return RowCells(self._tensors(), self.config, self._fades, self.blocks, before)
