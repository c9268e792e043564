"""Faster steps of a labeled memory network with the same results, and when they are taken.

One stream on a CPU is combined by compiled kernels, many streams on a GPU by fused kernels. While a
step is recorded the combiner works beside the memory, its next state is written in place, and a
check that a kernel makes anyway is not made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from labelmem.combiner import Combiner, CombinerState, CombinerStep
from labelmem.engines.triton import fused
from labelmem.fast import alone, row, tensor
from labelmem.lmn.state import Recurrent
from labelmem.memory import MemoryRead
from labelmem.trees import chosen, tree_map
from labelmem.trust import believed, recording

if TYPE_CHECKING:  # numba is imported when the first stream takes a step
    from labelmem.engines.numba.told import CompiledRead

__all__ = [
    "combine_compiled",
    "compiles",
    "mix_many",
    "model_score_many",
    "moved",
    "scored_by_kernel",
    "softmax_checks",
]

Theta = float | Combiner
"""A fixed weight of the memory, or the network that decides it."""


def compiles(combiner: Theta, read: MemoryRead, logits: Tensor) -> bool:
    """Whether all that comes after the read is done by compiled kernels."""
    if not read.compiled or torch.is_grad_enabled() or not alone(logits):
        return False
    return not isinstance(combiner, Combiner) or combiner.compiles(logits)


def combine_compiled(
    combiner: Theta,
    state: CombinerState | None,
    h: Tensor,
    logits: Tensor,
    read: MemoryRead,
    partition: bool,
    width: int,
) -> tuple[tuple[Tensor, ...], CombinerStep | None]:
    """P, theta, r and s of one stream on a CPU, and the combiner's step."""
    read = cast("CompiledRead", read)
    out, combined = np.empty((4, max(width, logits.shape[1])), np.float32), None
    if isinstance(combiner, Combiner):
        assert state is not None
        combined = combiner.combine_one(state, row(h), row(logits), read, partition, out)
    else:
        from labelmem.engines.numba.mix import mix_fixed

        known = (row(logits), read.told("label"), read.scores_of_cells)
        mix_fixed(*known, float(combiner), partition, out)
    return tuple(map(tensor, out)), combined


def scored_by_kernel(logits: Tensor) -> bool:
    """Whether a fused kernel does Eq. 1, and looks whether logits are finite on its way."""
    return fused(logits) and not logits.requires_grad


def softmax_checks(logits: Tensor | None) -> bool:
    """Whether it is left to that kernel to look: the answer is on the recording's list."""
    return logits is not None and recording() and scored_by_kernel(logits)


def model_score_many(logits: Tensor, width: int) -> Tensor:
    """Eq. 1 for many streams on a GPU."""
    from labelmem.engines.triton.mix import believed_by_model

    r, whole = believed_by_model(logits, width)
    if recording():
        believed(whole.all)
    return r


def mix_many(r: Tensor, s: Tensor, theta: Tensor, partition: bool) -> tuple[Tensor, Tensor]:
    """Eq. 5 for many streams on a GPU, and its two highest (n, 2)."""
    from labelmem.engines.triton.mix import mixed

    return mixed(r, s, theta, partition)


def moved(mask: Tensor | None, new: Recurrent, old: Recurrent) -> Recurrent:
    """New states in the streams of the mask; in a recording they are put where the old ones lie."""
    now = chosen(mask, new, old)
    if not recording():
        return now
    put: Recurrent = tree_map(Tensor.copy_, old, now)
    return put
