"""Which labels have a slot of a state for themselves, and what the slots say of all labels."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem.label_combiner.state import BACKGROUND, LabelState

__all__ = ["activated", "theta_of_labels"]


def theta_of_labels(theta: Tensor, ids: Tensor | None, width: int) -> Tensor:
    """From slots (n, A) to labels (n, width); without a slot a label has the background's.

    Examples
    --------
    >>> theta_of_labels(torch.tensor([[0.5, 0.1, 0.2]]), torch.tensor([[-1, 3, 0]]), width=4)
    tensor([[0.2000, 0.5000, 0.5000, 0.1000]])
    """
    if ids is None:
        return theta[:, 1 : 1 + width]
    background = theta[:, :1].expand(-1, width + 1)
    column = torch.where(ids >= 0, ids, width)  # slots without a label fall off the end
    return background.scatter(1, column, theta)[:, :width]


def activated(
    state: LabelState, r: Tensor, s: Tensor, threshold: float, mask: Tensor | None
) -> LabelState:
    """Remember r and s (n, W); labels above the threshold get slots, from the background state."""
    assert state.ids is not None
    ids = state.ids
    # A late label's scores are from a time when fewer labels were known.
    width = max(r.shape[1], int(ids.max()) + 1)
    r, s = (pad(x, (0, width - x.shape[1])) for x in (r, s))
    column = torch.where(ids >= 0, ids, width)
    held = torch.zeros(r.shape[0], width + 1, dtype=torch.bool, device=r.device)
    held = held.scatter(1, column, True)[:, :width]
    joins = ((r > threshold) | (s > threshold)) & ~held
    if mask is not None:
        joins &= mask[:, None]
    row, label = joins.nonzero(as_tuple=True)
    if len(row):
        rank = joins.cumsum(dim=1)[row, label] - 1
        slot = 1 + (ids >= 0).sum(dim=1)[row] + rank
        state = state.with_slots(int(slot.max()) + 1)
        assert state.ids is not None
        ids = state.ids.clone()
        ids[row, slot] = label
        # Slots freshly made hold the background state already; a spare one may not.
        mu = state.mu.clone()
        mu[row, slot] = state.mu[row, BACKGROUND]
        state = replace(state, ids=ids, mu=mu)
    named = ids >= 0
    column = ids.clamp(min=0)
    zero = torch.zeros_like(state.r)
    return replace(
        state,
        r=torch.where(named, r.gather(1, column), zero),
        s=torch.where(named, s.gather(1, column), zero),
    )
