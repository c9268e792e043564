"""The step of a history model for many streams on a GPU: the same numbers by one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmem.fast import visible
from labelmem.kernels import FUSED_MOST, fused

if TYPE_CHECKING:
    from labelmem.models.history import HistoryModel

__all__ = ["step_many"]

Stepped = tuple[Tensor, tuple[Tensor, ...]]


def step_many(model: HistoryModel, x: Tensor, state: tuple[Tensor, ...]) -> Stepped | None:
    """What the model's step gives, h (n, dim) and the next state; None where it must be plain."""
    table, mix = model.embedding.weight, model.mix
    simple = mix.dim() == 2 and model.hidden is None and model.rnn is None
    if not simple or model.training or torch.is_grad_enabled() or x.is_floating_point():
        return None
    if not fused(table, mix, model.decays, *state) or not 0 < model.dim <= FUSED_MOST:
        return None
    if x.shape != (len(state[0]),) or not visible(x, *state, table, mix):
        return None
    from labelmem.kernels.encode import history_step

    weights = (table, model.decays, mix, model.norm, model.prior)
    h, sums, counts = history_step(x, *weights, *state)
    return h, (sums, counts)
