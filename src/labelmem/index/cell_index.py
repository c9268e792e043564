"""An approximate index over one stream's cells: a read looks at the lists near h only.

The centres of the lists are part of the memory's state and are saved with it. The lists follow from
centres and cells, so they are made again where they are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmem.fast import Array, array, tensor
from labelmem.index.centres import centres_of
from labelmem.index_config import IndexConfig

if TYPE_CHECKING:
    from labelmem.engines.numba.index import Cells
    from labelmem.index.pool import Pool

__all__ = ["CellIndex"]


class CellIndex:
    """Which cells of one stream lie near a vector.

    Parameters
    ----------
    config
        How many lists there are and how many are looked at.

    Examples
    --------
    >>> index = CellIndex(IndexConfig(lists=2, probes=1, least=3))
    >>> index.covers(2), index.covers(3)
    (False, True)
    """

    def __init__(self, config: IndexConfig) -> None:
        self.config = config
        self._centres: Array | None = None
        self.ready: Pool | None = None
        """The lists, once they are made."""

    @staticmethod
    def fits(v: Tensor) -> bool:
        """Whether the cells ``v`` (n, K, d) can have an index: those of one stream on a CPU."""
        return v.device.type == "cpu" and v.dtype == torch.float32 and len(v) == 1

    def covers(self, used: int) -> bool:
        """Whether so many cells are read by the index."""
        return used >= self.config.least

    def pool(self, cells: Callable[[], Mapping[str, Tensor]], used: int) -> Pool:
        """The lists; ``cells`` gives the memory's tensors where they must be made first."""
        return self.ready or self._made(_arrays(cells()), used)

    def follow(self, cells: Cells, used: int, cell: int, grown: bool) -> None:
        """Let the index know that a cell was written; ``grown`` if it is new."""
        if not self.covers(used):
            return
        if grown and self.config.renews(used):
            self._centres = self.ready = None
            self._made(cells, used)
        elif self.ready is not None:
            self.ready.follow(cell, cells)

    def forget_lists(self) -> None:
        """Cells have changed and nobody says which."""
        self.ready = None

    def tensors(self, used: int) -> dict[str, Tensor]:
        """What must be saved beside the cells."""
        if self._centres is None or not self.covers(used):
            return {}
        return {"centres": tensor(self._centres)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave; without it, or with another choice, find it anew."""
        self._centres = self.ready = None
        saved = tensors.get("centres")
        if saved is not None and self.config.lists in (None, saved.shape[1]):
            self._centres = array(saved[0].clone())

    def _made(self, cells: Cells, used: int) -> Pool:
        from labelmem.index.pool import Pool

        if self._centres is None:
            self._centres = centres_of(cells.v[:used], self.config.lists_for(used))
        self.ready = Pool(cells, used, self._centres)
        return self.ready


def _arrays(cells: Mapping[str, Tensor]) -> Cells:
    """The memory's tensors as kernels see them."""
    from labelmem.engines.numba.index import Cells

    return Cells(*(array(cells[name])[0] for name in Cells._fields))
