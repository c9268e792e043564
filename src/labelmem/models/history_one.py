"""The step of a history model for one stream on a CPU: the same numbers in far fewer calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem.fast import alone, array, tensor, visible

if TYPE_CHECKING:
    from labelmem.compiled.encode import HistoryArrays
    from labelmem.models.history import HistoryModel

__all__ = ["arrays_of", "step_one"]

Stepped = tuple[Tensor, tuple[Tensor, ...]]


def step_one(model: HistoryModel, x: Tensor, state: tuple[Tensor, ...]) -> Stepped | None:
    """What the model's step gives, h (1, dim) and the next state; None where it must be plain."""
    table = model.embedding.weight
    if not alone(state[1]) or torch.is_grad_enabled() or model.training or not _simple(model):
        return None
    if table.dtype != state[1].dtype or table.device != state[1].device or x.is_floating_point():
        return None
    if x.shape != (1,) or state[0].shape[1:] != (len(model.mix), model.dim):
        return None
    if not visible(x, *state, table, model.mix):
        return None
    token = int(x)
    if not 0 <= token <= model.labels:
        return None
    from labelmem.compiled.history import history_step

    before = (array(state[0])[0], array(state[1])[0])
    after, h = (np.empty_like(before[0]), np.empty_like(before[1])), np.empty(model.dim, np.float32)
    known = (array(model.embedding.weight), array(model.decays), array(model.mix))
    history_step(*known, float(model.norm), float(model.prior), token, before, after, h)
    return tensor(h), (tensor(after[0]), tensor(after[1]))


def arrays_of(model: HistoryModel) -> HistoryArrays | None:
    """The model as kernels see it; None for one that they cannot step."""
    from labelmem.compiled.encode import HistoryArrays

    table, mix = model.embedding.weight, model.mix
    if not _simple(model) or model.head.weight is not table or model.training:
        return None
    if mix.dtype != torch.float32 or not mix.is_cpu or not visible(table):
        return None
    kinds = {"table": table, "bias": model.head.bias, "decays": model.decays, "mix": mix}
    arrays = {name: array(kind) for name, kind in kinds.items()}
    return HistoryArrays(**arrays, norm=float(model.norm), prior=float(model.prior))


def _simple(model: HistoryModel) -> bool:
    """Whether h is made of averages alone, with a factor for each entry."""
    return model.mix.dim() == 2 and model.hidden is None and model.rnn is None
