"""One stream's cells as the kernels see them: each is the only one of its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.engines.numba.index import Cells
from labelmem.engines.numba.places import table_of
from labelmem.engines.numba.read import measure, read_at, read_lone, read_parts
from labelmem.engines.numba.told import CompiledRead, Told
from labelmem.engines.numba.write import write_lone
from labelmem.fast import Array, array, row
from labelmem.narrow import UNIT

__all__ = ["CompiledCells", "CompiledRead", "bounds_of", "log_fades_of"]


class CompiledCells(Told):
    """The cells of one stream, one for each label, as arrays over the bytes of the tensors.

    Parameters
    ----------
    cells
        The memory's tensors by name, (1, K, …), spare positions included.
    used, time
        (1,) how many positions hold a cell, and the time of the latest observation.
    fades
        The factors by which the rates of writes fade.
    blocks
        Lengths of the blocks of h that are compared for themselves; None if nobody asks.
    before
        The same cells before the memory made room for more: what it knew of them holds.
    """

    # fmt: off
    __slots__ = (
        "_followed", "alpha", "born", "bounds", "config", "known", "label", "log_fades", "rates",
        "room", "shape", "size", "table", "tensor", "used", "v", "watched", "writes", "written",
    )
    # fmt: on

    def __init__(
        self,
        cells: Mapping[str, Tensor],
        used: Tensor,
        time: Tensor,
        config: MemoryConfig,
        fades: Tensor,
        blocks: Sequence[int] | None,
        before: CompiledCells | None = None,
    ) -> None:
        super().__init__()
        self.v, self.alpha, self.label = (array(cells[name])[0] for name in ("v", "alpha", "label"))
        self.written, self.born = array(cells["written"])[0], array(cells["born"])[0]
        self.writes, self.rates = array(cells["writes"])[0], array(cells["rates"])[0]
        self.used, self.time = array(used), array(time)
        self.config, self.watched = config, blocks is not None
        self.log_fades = log_fades_of(tuple(fades.tolist()))
        dim = self.v.shape[1] - (UNIT if config.cell_bits else 0)
        self.bounds = bounds_of(tuple(blocks or (dim,)))
        self.known = np.zeros((2, len(self.label)), np.float32)
        told = len(self.label) if self.watched else 0
        self.size = np.zeros((told, len(self.bounds) - 1), np.float32)
        k = int(self.used[0])
        if before is None:
            measure(self.v, self.alpha, self.bounds, 0, k, self.known, self.size)
        else:
            self.known[:, :k], self.size[:k] = before.known[:, :k], before.size[:k]
        self.table = table_of(self.label, k)
        self.tensor, self.shape, self.room = cells["v"], (1, dim), len(self.label)
        self._followed: Cells | None = None

    @property
    def told(self) -> tuple[str, ...]:
        """The arrays that reads tell."""
        watched = ("born", "writes", "rates", "size") if self.watched else ()
        return ("label", "alpha", "written", *watched)

    def are(self, v: Tensor) -> bool:
        """Whether these are still the memory's cells; it may have grown."""
        return v is self.tensor

    def read(self, h: Array, lam: float, delta: float) -> CompiledRead:
        """Eq. 2 and 3 for ``h`` (d,)."""
        # In one piece: two large ones, freed one by one, go back to the system every time.
        seen, parts = np.empty((2, int(self.used[0])), np.float32), None
        if len(self.bounds) == 2:
            read_lone(self.v, self.known, h, lam, delta, seen[0], seen[1])
        else:
            parts = np.empty((seen.shape[1], len(self.bounds) - 1), np.float32)
            kernel = (h, lam, delta, seen[0], parts, seen[1])
            read_parts(self.v, self.known, self.size, self.bounds, *kernel)
        return CompiledRead(self.moment(seen.shape[1]), seen, parts)

    def read_there(self, h: Tensor, lam: float, delta: float) -> CompiledRead:
        """The same for ``h`` (1, d) that is :func:`labelmem.fast.addressable`."""
        if len(self.bounds) > 2:
            return self.read(row(h), lam, delta)
        k = int(self.used[0])
        seen = np.empty((2, k), np.float32)
        read_at(self.v, self.known, h.data_ptr(), self.shape[1], lam, delta, seen)
        return CompiledRead(self.moment(k), seen, None)

    def told_to_index(self) -> Cells:
        """What an index follows."""
        if self._followed is None:
            self._followed = Cells(self.v, self.alpha, self.label, self.written)
        return self._followed

    def write(self, h: Tensor, y: int, P: Tensor | None) -> int:
        """Learn that the label of ``h`` (1, d) was ``y``: ``write_lone``.

        ``h``, and P (1, W) if its margin counts, are :func:`labelmem.fast.addressable`.
        """
        self.settle()
        config = self.config
        return write_lone(
            self.v,
            self.alpha,
            self.label,
            self.written,
            self.born,
            self.writes,
            self.rates,
            self.used,
            self.time,
            self.known,
            self.size,
            self.table,
            self.bounds,
            self.log_fades,
            h.data_ptr(),
            y,
            0 if P is None else P.data_ptr(),
            -1 if P is None else P.shape[1],
            config.margin,
            config.decay,
            config.capacity or 0,
            config.evict == "oldest",
        )


@lru_cache(maxsize=64)
def log_fades_of(fades: tuple[float, ...]) -> Array:
    """One array for all streams."""
    return np.log(np.array(fades, np.float32))


@lru_cache(maxsize=64)
def bounds_of(blocks: tuple[int, ...]) -> Array:
    """Where the blocks begin, and the end; one array for all streams."""
    return np.cumsum([0, *blocks])
