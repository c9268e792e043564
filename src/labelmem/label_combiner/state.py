"""What a label combiner remembers of a stream from one step to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from labelmem.combining import CombinerState

__all__ = ["BACKGROUND", "LabelState"]

BACKGROUND = 0
"""The slot of the state that all labels without a slot of their own share."""


@dataclass(frozen=True)
class LabelState(CombinerState):
    """Committed state of ``n`` streams over ``A`` slots; slot 0 is the background state.

    Without ``ids`` slot ``1 + y`` belongs to label y. With ``ids`` (n, A) a slot belongs to the
    label it names, -1 for none.
    """

    mu: Tensor
    """(n, A, hidden)."""
    r: Tensor
    """(n, A) the model's score of the slot's label one step ago."""
    s: Tensor
    """(n, A) the memory's score of the slot's label one step ago."""
    missed: Tensor
    """(n, 2) whether the model's and the memory's own best label was wrong one step ago."""
    ids: Tensor | None = None
    spare: Tensor | None = None
    """Room for the next mu, where steps are recorded; no part of what is remembered."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved."""
        return {name: x for name, x in super().tensors().items() if name != "spare"}

    def with_slots(self, slots: int) -> LabelState:
        """The same with at least so many slots: new ones hold the background state, no scores."""
        more = slots - self.mu.shape[1]
        if more <= 0:
            return self
        n = self.mu.shape[0]
        background = self.mu[:, :1].expand(-1, more, -1)
        none = self.r.new_zeros(n, more)
        ids = self.ids
        if ids is not None:
            ids = torch.cat([ids, ids.new_full((n, more), -1)], dim=1)
        return replace(
            self,
            mu=torch.cat([self.mu, background], dim=1),
            r=torch.cat([self.r, none], dim=1),
            s=torch.cat([self.s, none], dim=1),
            ids=ids,
        )

    def with_spare(self, slots: int) -> LabelState:
        """The same with room for the next mu, and at least so many slots."""
        state = self.with_slots(slots)
        if state.spare is not None and state.spare.shape == state.mu.shape:
            return state
        mu, r, s = (x.contiguous() for x in (state.mu, state.r, state.s))
        return replace(state, mu=mu, r=r, s=s, spare=torch.empty_like(mu))
