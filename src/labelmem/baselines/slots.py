"""Per-stream tables from labels to slots: what a stream keeps grows with the labels it has met."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.baselines.state import wider

__all__ = ["FREE", "no_slots", "opened", "overwritten", "spread"]

FREE = -1
"""The label of a slot that nothing lies in."""


def no_slots(streams: int, device: torch.device) -> Tensor:
    """The labels (n, K) of the slots of streams that have met none, K = 0."""
    return torch.zeros(streams, 0, dtype=torch.int64, device=device)


def opened(ids: Tensor, y: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Make sure that label y (n,) of the masked streams has a slot.

    Returns
    -------
    ids, slot
        The labels (n, K') of the slots, filled from the left, at least one, and the slot (n,) of y.
        In a stream that is masked out the slot means nothing.

    Examples
    --------
    >>> ids, slot = opened(torch.tensor([[7, 3], [7, FREE]]), torch.tensor([3, 5]), None)
    >>> ids, slot
    (tensor([[7, 3],
            [7, 5]]), tensor([1, 1]))
    """
    ids = wider(ids, 1, FREE)
    hit = ids == y[:, None]
    known = hit.any(dim=1)
    used = (ids != FREE).sum(dim=1)
    position = (hit * torch.arange(ids.shape[1], device=ids.device)).sum(dim=1)
    slot = torch.where(known, position, used)
    joins = ~known if mask is None else ~known & mask
    # The one question to the device: how many slots are needed.
    ids = wider(ids, int(torch.where(joins, slot + 1, 1).amax()), FREE)
    here = torch.arange(ids.shape[1], device=ids.device) == slot[:, None]
    ids = torch.where(here & joins[:, None], y[:, None], ids)
    return ids, slot.clamp(max=ids.shape[1] - 1)


def spread(ids: Tensor, values: Tensor, width: int) -> Tensor:
    """The values (n, K) of the slots in the columns of their labels, as (n, width), 0 elsewhere."""
    zeros = values.new_zeros(ids.shape[0], width)
    return zeros.scatter_add(1, ids.clamp(min=0), values * (ids != FREE))


def overwritten(scores: Tensor, ids: Tensor, values: Tensor) -> Tensor:
    """The scores (n, W) with the columns of the slots' labels replaced by ``values`` (n, K).

    Examples
    --------
    >>> overwritten(torch.zeros(1, 3), torch.tensor([[2, FREE]]), torch.tensor([[5.0, 9.0]]))
    tensor([[0., 0., 5.]])
    """
    width = scores.shape[1]
    column = torch.where(ids == FREE, width, ids)  # free slots fall off the end
    return wider(scores, width + 1).scatter(1, column, values)[:, :width]
