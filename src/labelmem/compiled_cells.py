"""One stream's cells as the kernels see them, and what a read of them tells.

A read computes what every step needs, the scores, and copies nothing: the rest is told when someone
asks for it. Before a write changes the cells, reads that are still held get their copies.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem.compiled_index import Cells
from labelmem.compiled_places import table_of
from labelmem.compiled_read import measure, read_lone, read_parts
from labelmem.compiled_write import write_lone
from labelmem.config import MemoryConfig
from labelmem.fast import Array, array, places, tensor
from labelmem.narrow import UNIT
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["CompiledCells", "CompiledRead"]

_NO_P = np.empty(0, np.float32)
_TOLD = ("label", "alpha", "written")
_WATCHED = ("born", "writes", "rates", "size")


class CompiledCells:
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

    # There may be very many streams, and each has one of these.
    # fmt: off
    __slots__ = (
        "_now", "_pointer", "alpha", "born", "bounds", "config", "known", "label", "log_fades",
        "rates", "size", "table", "time", "used", "v", "watched", "writes", "written",
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
        self.v, self.alpha, self.label = (array(cells[name])[0] for name in ("v", "alpha", "label"))
        self.written, self.born = array(cells["written"])[0], array(cells["born"])[0]
        self.writes, self.rates = array(cells["writes"])[0], array(cells["rates"])[0]
        self.used, self.time = array(used), array(time)
        self.config, self.watched = config, blocks is not None
        self.log_fades = _log_fades(tuple(fades.tolist()))
        dim = self.v.shape[1] - (UNIT if config.cell_bits else 0)
        self.bounds = _bounds(tuple(blocks or (dim,)))
        self.known = np.zeros((2, len(self.label)), np.float32)
        told = len(self.label) if self.watched else 0
        self.size = np.zeros((told, len(self.bounds) - 1), np.float32)
        k = int(self.used[0])
        if before is None:
            measure(self.v, self.alpha, self.bounds, 0, k, self.known, self.size)
        else:
            self.known[:, :k], self.size[:k] = before.known[:, :k], before.size[:k]
        self.table = table_of(self.label, k)
        self._pointer = cells["v"].data_ptr()
        self._now: weakref.ref[_Moment] | None = None

    def __reduce__(self) -> Any:
        """No copy of it looks at the bytes of the copied memory, so that is found out anew."""
        return type(None), ()

    def are(self, v: Tensor) -> bool:
        """Whether these are still the memory's cells; it may have grown."""
        return v.data_ptr() == self._pointer

    def read(self, h: Array, lam: float, delta: float) -> CompiledRead:
        """Eq. 2 and 3 for ``h`` (d,)."""
        k = int(self.used[0])
        # In one piece: two large ones, freed one by one, go back to the system every time.
        cosine, score = np.empty((2, k), np.float32)
        parts = None
        if len(self.bounds) == 2:
            read_lone(self.v, self.known, h, lam, delta, cosine, score)
        else:
            parts = np.empty((k, len(self.bounds) - 1), np.float32)
            kernel = (h, lam, delta, cosine, parts, score)
            read_parts(self.v, self.known, self.size, self.bounds, *kernel)
        moment = None if self._now is None else self._now()
        if moment is None:
            moment = _Moment(self, k)
            self._now = weakref.ref(moment)
        return CompiledRead(moment, cosine, score, parts)

    def settle(self) -> None:
        """Something is about to change the cells: reads that are still held get their copies."""
        moment = None if self._now is None else self._now()
        if moment is not None:
            moment.keep()
        self._now = None

    def told_to_index(self) -> Cells:
        """What an index follows."""
        return Cells(self.v, self.alpha, self.label, self.written)

    def write(self, h: Array, y: int, P: Array | None) -> int:
        """Learn that the label of ``h`` was ``y``: see :func:`compiled_write.write_lone`."""
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
            h,
            y,
            _NO_P if P is None else P,
            P is not None,
            config.margin,
            config.decay,
            config.capacity or 0,
            config.evict == "oldest",
        )


@lru_cache(maxsize=64)
def _log_fades(fades: tuple[float, ...]) -> Array:
    """One array for all streams."""
    return np.log(np.array(fades, np.float32))


@lru_cache(maxsize=64)
def _bounds(blocks: tuple[int, ...]) -> Array:
    """Where the blocks begin, and the end; one array for all streams."""
    return np.cumsum([0, *blocks])


class _Moment:
    """The cells between two writes: the cells themselves, until something is about to change."""

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
    cosines, scores_of_cells
        (K,) of h with the cells, and Eq. 3's s.
    parts
        (K, B) cosines of each block of h; None where there is but one.
    """

    lone = True
    compiled = True
    moment: _Moment
    cosines: Array
    scores_of_cells: Array
    parts: Array

    def __init__(
        self, moment: _Moment, cosines: Array, scores_of_cells: Array, parts: Array | None
    ) -> None:
        # Past the guard that makes reads unchangeable: it costs as much as reading a few cells.
        own = self.__dict__
        own["moment"], own["cosines"], own["scores_of_cells"] = moment, cosines, scores_of_cells
        own["parts"] = cosines[:, None] if parts is None else parts

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
        return tensor(self.scores_of_cells)

    @cached_property
    def group(self) -> Tensor:
        """(1, K) each cell's own position."""
        return tensor(places(self.moment.used))

    @property
    def strength(self) -> Tensor:
        """(1, K)."""
        return self.alpha

    @cached_property
    def cosine(self) -> Tensor:
        """(1, K)."""
        return tensor(self.cosines)

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
