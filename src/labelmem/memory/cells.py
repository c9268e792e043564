"""Where the cells of a labeled memory lie: room for them, and what is saved of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.narrow import UNIT, narrowed, narrowed_width, widened
from labelmem.reading import FADES
from labelmem.showing import Facts, Shown

__all__ = ["FREE", "CellStore"]

FREE = -1
"""The label of a position that holds no cell."""
_PATIENCE = 16  # writes on a device before it is asked how many positions are in use
_FIRST = 256  # positions that one stream's memory grows by before an eighth is more
_CELLS = ("v", "alpha", "label", "group", "written", "born", "writes", "rates")


class CellStore(Shown):
    """Cells (label, v, alpha, time of last write) of ``n`` streams, in positions that may be spare.

    Parameters are those of :class:`labelmem.memory.LabeledMemory`.
    """

    def __init__(
        self,
        dim: int | None,
        config: MemoryConfig | None,
        streams: int,
        device: torch.device | str | None,
        dtype: torch.dtype,
        blocks: Sequence[int] | None,
    ) -> None:
        self.config = config or MemoryConfig()
        self.dim = dim
        self.blocks = blocks
        n = streams
        self._narrow = self.config.cell_bits == 16
        kind = torch.int16 if self._narrow else dtype
        self.v = torch.zeros(n, 0, self._width(dim or 0), device=device, dtype=kind)
        self.alpha = torch.zeros(n, 0, device=device, dtype=dtype)
        self.label = torch.zeros(n, 0, device=device, dtype=torch.int64)
        self.group = torch.zeros(n, 0, device=device, dtype=torch.int64)  # not for lone cells
        # Times count the stream's observations. `born` orders the cells of a stream: an overwritten
        # cell keeps its place in that order, a new one comes last.
        self.written = torch.zeros(n, 0, device=device, dtype=torch.int32)
        self.born = torch.zeros(n, 0, device=device, dtype=torch.int32)
        self.writes = torch.zeros(n, 0, device=device, dtype=torch.int32)
        fades = FADES if blocks is not None else ()  # nobody asks for the rates otherwise
        self.rates = torch.zeros(n, 0, len(fades), device=device, dtype=dtype)  # when last written
        self.used = torch.zeros(n, device=device, dtype=torch.int64)
        self.time = torch.zeros(n, device=device, dtype=torch.int32)
        self._fades = torch.tensor(fades, device=device, dtype=dtype)
        self._filled = 0  # the largest of `used`, or a little more: positions beyond it are spare
        self._guessed = 0  # writes since it was exact

    def _width(self, dim: int) -> int:
        """How many columns vectors of that length are kept in."""
        return narrowed_width(dim) if self._narrow else dim

    def _contents(self, cells: Tensor) -> Tensor:
        """The vectors (…, d) that lie in these cells."""
        return widened(cells, self.alpha.dtype) if self._narrow else cells

    def _kept_as(self, v: Tensor, turn: Tensor) -> Tensor:
        """Vectors (…, d) as cells keep them that were written ``turn`` (…,) times before."""
        return narrowed(v, turn) if self._narrow else v

    @property
    def streams(self) -> int:
        """How many independent memories lie side by side."""
        return self.used.shape[0]

    def __len__(self) -> int:
        """The number of cells of all streams together."""
        return int(self.used.sum())

    def _facts(self) -> Facts:
        dim = {} if self.dim is None else {"vectors": f"d={self.dim}"}
        return {"streams": self.streams, "cells": len(self)} | dim

    def _groups(self, k: int) -> Tensor:
        """(n, k) the positions of the leading cells: each cell's own where it is the only one."""
        if self.config.cells_per_label == 1:
            return torch.arange(k, device=self.label.device).expand(self.streams, -1)
        return self.group[:, :k].clone()

    def _came(self, group: Tensor, age: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of each label its writes, age, age of the first write, and rates, at the leading cell."""
        k = self._filled
        writes, first = self.writes[:, :k].clone(), self.time[:, None] - self.born[:, :k] + 1
        rates = self.rates[:, :k] * self._fades ** (age - 1).clamp(min=0)[..., None]
        if self.config.cells_per_label == 1:
            return writes, age, first, rates
        held = self.label[:, :k] != FREE
        writes = torch.zeros_like(writes).scatter_add(1, group, writes * held)
        rates = torch.zeros_like(rates).scatter_add(
            1, group[..., None].expand_as(rates), rates * held[..., None]
        )
        first = first.masked_fill(~held, 0)
        first = first.scatter_reduce(1, group, first, "amax")
        age = age.masked_fill(~held, torch.iinfo(age.dtype).max)
        return writes, age.scatter_reduce(1, group, age, "amin"), first, rates

    def _cells(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in _CELLS}

    def _make_positions(self) -> None:
        """Make room for one more cell in each stream, without asking a device every time."""
        if self._guessed >= _PATIENCE:
            self._count()
        self._filled, self._guessed = self._filled + 1, self._guessed + 1
        if self.config.capacity:
            self._filled = min(self._filled, self.config.capacity)
        self._grow(self._filled)

    def reserve(self, spare: int) -> float:
        """Let all positions count as filled, at least ``spare`` of them free in every stream.

        Then reads and writes keep their shapes while a recorded step is repeated. Returns for how
        many writes that is so: at capacity, forever.
        """
        self._count()
        used, capacity = self._filled, self.config.capacity or math.inf
        self._grow(int(min(used + spare, capacity)))
        self._filled = self.label.shape[1]
        return math.inf if self._filled >= capacity else self._filled - used

    @property
    def spare_ahead(self) -> bool:
        """Whether there are positions that reads do not look at."""
        return self._filled < self.label.shape[1]

    def _count(self) -> None:
        """Find out how many positions are in use."""
        self._filled, self._guessed = int(self.used.max()) if self.streams else 0, 0

    def _grow(self, positions: int) -> None:
        """Make sure that ``positions`` exist, growing by an eighth so that little lies spare.

        One stream's first positions come faster: to make room takes it as long as several steps.
        """
        held = self.label.shape[1]
        if positions <= held:
            return
        more = max(4, held // 8, positions - held)
        if self.streams == 1:
            more = max(more, min(held // 4, _FIRST))
        if self.config.capacity:
            more = max(positions - held, min(more, self.config.capacity - held))
        for name, cells in self._cells().items():
            if name != "group" or self.config.cells_per_label != 1:
                fill = FREE if name == "label" else 0
                extra = cells.new_full((len(cells), more, *cells.shape[2:]), fill)
                setattr(self, name, torch.cat([cells, extra], dim=1))

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved to continue bit for bit, without the spare positions."""
        self._count()
        k = self._filled
        saved = {name: cells[:, :k] for name, cells in self._cells().items()}
        saved["group"] = self._groups(k)
        return saved | {"used": self.used, "time": self.time}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave; shapes must fit."""
        for name in (*_CELLS, "used", "time"):
            setattr(self, name, tensors[name].to(self.used.device).clone())
        if self._narrow != (self.v.dtype == torch.int16):  # saved with another choice of bits
            first, dtype = torch.zeros((), device=self.v.device), self.alpha.dtype
            self.v = narrowed(self.v, first) if self._narrow else widened(self.v, dtype)
        self.rates = self.rates[..., : len(self._fades)]
        if self.config.cells_per_label == 1:
            self.group = self.group[:, :0].clone()
        self._filled = self.label.shape[1]
        self.dim = self.v.shape[2] - UNIT * self._narrow or None
