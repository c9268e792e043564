"""An approximate index over one stream's cells: a read looks at the lists near h only.

The centres of the lists are part of the memory's state and are saved with it. The lists follow from
centres and cells, so they are made again where they are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import Array, array, compiled, tensor
from labelmem.index.centres import centres_of
from labelmem.index.lists import Lists
from labelmem.index_config import IndexConfig

if TYPE_CHECKING:
    from labelmem.compiled.index import Cells
    from labelmem.index.pool import Pool

__all__ = ["CellIndex"]

_TYPES = (torch.float32, torch.float64)


class CellIndex:
    """Which cells of one stream lie near a vector.

    Parameters
    ----------
    config
        How many lists there are and how many are looked at.

    Examples
    --------
    >>> index = CellIndex(IndexConfig(lists=2, probes=1, least=3))
    >>> v = torch.tensor([[[1.0, 0.1], [0.1, 1.0], [2.0, 0.0], [0.0, 0.0]]])  # one place is spare
    >>> index.covers(2), index.covers(3)
    (False, True)
    >>> number = torch.arange(4)[None]
    >>> cells = {"v": v, "alpha": torch.ones(1, 4), "label": number, "written": number.int()}
    >>> index.near(cells, 3, torch.tensor([1.0, 0.0]).numpy())[0].tolist()
    [0, 2]
    """

    def __init__(self, config: IndexConfig) -> None:
        self.config = config
        self._centres: Array | None = None
        self._lists: Lists | Pool | None = None

    @staticmethod
    def fits(v: Tensor) -> bool:
        """Whether the cells ``v`` (n, K, d) can have an index: those of one stream on a CPU."""
        return v.device.type == "cpu" and v.dtype in _TYPES and len(v) == 1

    def covers(self, used: int) -> bool:
        """Whether so many cells are read by the index."""
        return used >= self.config.least

    def near(self, cells: Mapping[str, Tensor], used: int, h: Array) -> tuple[Array, Array]:
        """The positions of the cells in the lists nearest to ``h`` (d,), and their cosines.

        ``cells`` are the memory's tensors by name, (1, K, …).
        """
        return self._made(cells, used).look(h, self.config.probes)

    def pool(self, cells: Callable[[], Mapping[str, Tensor]], used: int) -> Pool | None:
        """The lists as kernels look at them; None if they do not.

        ``cells`` gives the memory's tensors where the lists must be made first.
        """
        lists = self._lists if self._lists is not None else self._made(cells(), used)
        return None if isinstance(lists, Lists) else lists

    @property
    def ready(self) -> Pool | None:
        """The lists as kernels look at them, if they are made."""
        return None if isinstance(self._lists, Lists) else self._lists

    def follow(self, cells: Mapping[str, Tensor], used: int, written: Array, grown: bool) -> None:
        """Let the index know that a write changed the cells at the positions ``written``.

        ``grown`` says whether one of them is new.
        """
        if not self.covers(used):
            return
        if grown and self.config.renews(used):
            self._centres = self._lists = None
            self._made(cells, used)
        elif isinstance(self._lists, Lists):
            self._lists.follow(written, array(cells["v"])[0][written])
        elif self._lists is not None:
            for cell in written.tolist():
                self._lists.follow(cell, _arrays(cells))

    def follow_one(self, cells: Cells, used: int, cell: int, grown: bool) -> bool:
        """The same for one cell, compiled; False if :meth:`follow` must be told."""
        lists = self._lists
        if lists is None or isinstance(lists, Lists) or (grown and self.config.renews(used)):
            return False
        lists.follow(cell, cells)
        return True

    def forget_lists(self) -> None:
        """Cells have changed and nobody says which."""
        self._lists = None

    def tensors(self, v: Tensor, used: int) -> dict[str, Tensor]:
        """What must be saved beside the cells."""
        return {"centres": tensor(self._found(v, used))} if self.covers(used) else {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave; without it, or with another choice, find it anew."""
        self._centres = self._lists = None
        saved = tensors.get("centres")
        if saved is not None and self.config.lists in (None, saved.shape[1]):
            self._centres = array(saved[0].clone())

    def _found(self, v: Tensor, used: int) -> Array:
        if self._centres is None:
            self._centres = centres_of(array(v)[0, :used], self.config.lists_for(used))
        return self._centres

    def _made(self, cells: Mapping[str, Tensor], used: int) -> Lists | Pool:
        if self._lists is None:
            v, centres = array(cells["v"])[0], self._found(cells["v"], used)
            if compiled(v.dtype == np.float32):
                from labelmem.index.pool import Pool

                self._lists = Pool(_arrays(cells), used, centres)
            else:
                self._lists = Lists(v[:used], centres)
        return self._lists


def _arrays(cells: Mapping[str, Tensor]) -> Cells:
    """The memory's tensors as kernels see them."""
    from labelmem.compiled.index import Cells

    return Cells(*(array(cells[name])[0] for name in Cells._fields))
