"""The step of a history model by one kernel: the same numbers in far fewer calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem.engines.triton import FUSED_MOST, fused
from labelmem.fast import alone, array, tensor, visible

if TYPE_CHECKING:
    from labelmem.engines.numba.encode import HistoryArrays
    from labelmem.models.history import HistoryModel

__all__ = ["arrays_of", "kernel_step"]

Stepped = tuple[Tensor, tuple[Tensor, ...]]


def kernel_step(model: HistoryModel, x: Tensor, state: tuple[Tensor, ...]) -> Stepped | None:
    """What the model's step gives, h (n, dim) and the next state; None where it must be plain.

    There are kernels for one stream on a CPU, and for many on a GPU.
    """
    table, mix = model.embedding.weight, model.mix
    if torch.is_grad_enabled() or model.training or not _simple(model) or x.is_floating_point():
        return None
    if x.shape != (len(state[0]),) or not visible(x, *state, table, mix):
        return None
    if fused(table, mix, model.decays, *state) and 0 < model.dim <= FUSED_MOST:
        from labelmem.engines.triton.encode import history_step as step_many

        weights = (table, model.decays, mix, model.norm, model.prior)
        h, sums, counts = step_many(x, *weights, *state)
        return h, (sums, counts)
    if not alone(state[1]) or table.dtype != state[1].dtype or table.device != state[1].device:
        return None
    token = int(x)
    if not 0 <= token <= model.labels or state[0].shape[1:] != (len(mix), model.dim):
        return None
    from labelmem.engines.numba.history import history_step as step_one

    before = (array(state[0])[0], array(state[1])[0])
    after = (np.empty_like(before[0]), np.empty_like(before[1]))
    out = np.empty(model.dim, np.float32)
    known = (array(table), array(model.decays), array(mix))
    step_one(*known, float(model.norm), float(model.prior), token, before, after, out)
    return tensor(out), (tensor(after[0]), tensor(after[1]))


def arrays_of(model: HistoryModel) -> HistoryArrays | None:
    """The model as kernels see it; None for one that they cannot step."""
    from labelmem.engines.numba.encode import HistoryArrays

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
