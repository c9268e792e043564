"""What a read of the memory tells, for any number of streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from labelmem.engines.triton import fused
from labelmem.errors import InputError
from labelmem.showing import line

__all__ = ["FADES", "LabelPast", "LoneRead", "MemoryRead"]

FADES = (0.9, 0.97)
"""Rates of a label's writes are kept over about ten and about thirty observations."""


@dataclass(frozen=True)
class LabelPast:
    """How the labels in memory came so far; (n, K), at the leading cells."""

    writes: Tensor
    """How often the label was written."""
    age: Tensor
    """Observations since it was last written, 1 for the latest."""
    since_first: Tensor
    """Observations since it was first written."""
    rates: Tensor
    """(n, K, 2) its writes, each fading by the factors :data:`FADES` with every observation."""
    cosine: Tensor
    """(n, K, B) the cosine of each block of h with that block of the label's M."""
    size: Tensor
    """(n, K, B) the length of that block of M."""


@dataclass(frozen=True, repr=False)
class MemoryRead:
    """What a read saw, kept with the prediction so that it can be explained later.

    All are (n, K) over the streams' positions; ``label`` is -1 where there is no cell.
    """

    label: Tensor
    alpha: Tensor
    weight: Tensor
    """Eq. 2's share of the cell among the cells of its label."""
    score: Tensor
    """Eq. 3's s of the label, at the position of the label's first cell, 0 elsewhere."""
    group: Tensor
    """The position of a leading cell of the same label."""
    strength: Tensor
    """Eq. 2's alpha of the label, at the leading cell."""
    cosine: Tensor
    """The cosine of h with the label's M, at the leading cell."""
    age: Tensor
    """Observations since the cell was last written, 1 for the latest."""
    past: LabelPast | None = None
    """How the label came so far, where the memory was asked to tell."""
    lone: ClassVar[bool] = False
    """Whether it is known that every cell is the only one of its label."""
    compiled: ClassVar[bool] = False
    """Whether it was read by compiled kernels."""

    def __repr__(self) -> str:
        return line(self, {"streams": len(self.label), "cells": int((self.label >= 0).sum())})

    @property
    def leads(self) -> Tensor:
        """Whether a position holds the leading cell of a label."""
        if self.lone:
            return self.label >= 0
        columns = torch.arange(self.label.shape[1], device=self.label.device)
        return (self.label >= 0) & (self.group == columns)

    def scores(self, width: int) -> Tensor:
        """``s`` spread over ``width`` label columns, as (n, width)."""
        if self.label.numel() and int(self.label.max()) >= width:
            raise InputError(
                f"the memory holds the label {int(self.label.max())}; {width} columns are too few"
            )
        return self.spread(self.score, width)

    def spread(self, values: Tensor, width: int) -> Tensor:
        """Values (n, K), zero but at leading cells, as (n, width): enough for all labels."""
        cells = self.lone and width and self.label.shape[1]
        if cells and fused(values) and not values.requires_grad:
            from labelmem.engines.triton.past import spread_many

            return spread_many(self.label, values, width)
        empty = values.new_zeros(values.shape[0], width)
        return empty.scatter_add(1, self.label.clamp(min=0), values)


@dataclass(frozen=True, repr=False)
class LoneRead(MemoryRead):
    """A read of a memory that has one cell for each label, by fused kernels."""

    lone = True
