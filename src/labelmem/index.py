"""An approximate index over one stream's cells: a read looks at the lists near h only.

The centres of the lists are part of the memory's state and are saved with it. The lists follow from
centres and cells, so they are made again where they are missing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.fast import Array, array, tensor
from labelmem.index_centres import centres_of
from labelmem.index_config import IndexConfig
from labelmem.index_lists import Lists

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
    >>> index.covers(v, 2), index.covers(v, 3)
    (False, True)
    >>> index.near(v, 3, torch.tensor([1.0, 0.0]).numpy())[0].tolist()
    [0, 2]
    """

    def __init__(self, config: IndexConfig) -> None:
        self.config = config
        self._centres: Array | None = None
        self._lists: Lists | None = None

    def covers(self, v: Tensor, used: int) -> bool:
        """Whether ``used`` cells in ``v`` (n, K, d) are so many that reads use the index."""
        here = v.device.type == "cpu" and v.dtype in _TYPES and len(v) == 1
        return here and used >= self.config.least

    def near(self, v: Tensor, used: int, h: Array) -> tuple[Array, Array]:
        """The positions of the cells in the lists nearest to ``h`` (d,), and their cosines."""
        return self._made(v, used).look(h, self.config.probes)

    def follow(self, v: Tensor, used: int, written: Array, grown: bool) -> None:
        """Let the index know that a write changed the cells at the positions ``written``.

        ``grown`` says whether one of them is new.
        """
        if not self.covers(v, used):
            return
        if grown and self.config.renews(used):
            self._centres = self._lists = None
            self._made(v, used)
        elif self._lists is not None:
            self._lists.follow(written, array(v)[0][written])

    def forget_lists(self) -> None:
        """Cells have changed and nobody says which."""
        self._lists = None

    def tensors(self, v: Tensor, used: int) -> dict[str, Tensor]:
        """What must be saved beside the cells."""
        return {"centres": tensor(self._found(v, used))} if self.covers(v, used) else {}

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

    def _made(self, v: Tensor, used: int) -> Lists:
        if self._lists is None:
            self._lists = Lists(array(v)[0, :used], self._found(v, used))
        return self._lists
