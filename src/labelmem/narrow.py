"""Cells of 16 bits: a cell's numbers as multiples of its own unit, which lies behind them.

A cell is a sum that grows with every write. A float of 16 bits has 11 or 8 digits for it, so that
after some thousand writes the next one is rounded away. Whole numbers from -32767 to 32767, in
units of the cell's largest entry over 32767, have 15. What a write adds may still be less than a
unit; so numbers are rounded up or down in turns, as often as keeps the sum right in the long run.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["MOST", "STRIDE", "UNIT", "narrowed", "narrowed_width", "widened"]

MOST = 32767
"""The largest number of units."""
UNIT = 2
"""Columns of 16 bits that the unit takes: it is a float of 32."""
STRIDE = 2654435769
"""2**32 over the golden ratio: its multiples, modulo 2**32, spread evenly from the first few on."""


def narrowed_width(dim: int) -> int:
    """How many columns of 16 bits a vector takes.

    Examples
    --------
    >>> narrowed_width(128)
    130
    """
    return dim + UNIT


def narrowed(v: Tensor, turn: Tensor) -> Tensor:
    """Vectors (…, d) in 16 bits, (…, d + 2).

    Parameters
    ----------
    turn
        (…,) how often each of them was rounded before; for the first time to the nearest.

    Examples
    --------
    >>> kept = narrowed(torch.tensor([3.0, -1.5, 0.0]), turn=torch.tensor(0))
    >>> kept.dtype, widened(kept, torch.float32)
    (torch.int16, tensor([ 3.0000, -1.5000,  0.0000]))
    """
    largest = torch.nn.functional.pad(v.abs(), (0, 1)).amax(dim=-1, keepdim=True)
    unit = (largest / MOST).to(torch.float32)
    units = v / torch.where(unit > 0, unit, 1.0).to(v.dtype)
    whole = (units + _share_up(turn, v)).floor().clamp(-MOST, MOST).to(torch.int16)
    # A copy: of no vectors at all, the strides may be such that there is no view of another type.
    unit = unit.clone(memory_format=torch.contiguous_format)
    return torch.cat([whole, unit.view(torch.int16)], dim=-1)


def widened(cells: Tensor, dtype: torch.dtype) -> Tensor:
    """The vectors (…, d) that :func:`narrowed` was given, within a unit of each."""
    # A copy: in place the unit may begin where no float of 32 bits can.
    unit = cells[..., -UNIT:].clone(memory_format=torch.contiguous_format).view(torch.float32)
    return cells[..., :-UNIT].to(dtype) * unit.to(dtype)


def _share_up(turn: Tensor, v: Tensor) -> Tensor:
    """(…, d) what is added before rounding down: over the turns, evenly spread from 0 to 1.

    Each entry has a step of its own, so that entries are not rounded up together.
    """
    step = torch.arange(1, v.shape[-1] + 1, device=v.device) * STRIDE % 2**32
    at = (turn[..., None].to(torch.int64) * step + 2**31) % 2**32
    return (at >> 8).to(v.dtype) / 2**24
