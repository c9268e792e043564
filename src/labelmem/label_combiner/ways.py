"""Faster steps of a label combiner with the same results.

One stream on a CPU takes compiled kernels, many streams on a GPU take fused ones. Where steps are
recorded, the next state is written into a spare buffer, which then changes places with the current
one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from labelmem.combining import CombinerStep, View
from labelmem.fast import Array, array, row, tensor
from labelmem.label_combiner.network import Network
from labelmem.label_combiner.state import LabelState
from labelmem.memory import MemoryRead

if TYPE_CHECKING:  # numba is imported when the first stream takes a step
    from labelmem.engines.numba.told import CompiledRead

__all__ = [
    "cell_many",
    "combine_compiled",
    "missed_compiled",
    "observe_in_place",
]


def cell_many(
    network: Network, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The next states and theta of many streams on a GPU."""
    from labelmem.engines.triton.label import label_step

    return label_step(mu, r, s, shared, network.cell_weights(), out)


def combine_compiled(
    network: Network,
    state: LabelState,
    h: Array,
    logits: Array,
    read: MemoryRead,
    partition: bool,
    out: Array,
) -> CombinerStep:
    """Eq. 1, a step and Eq. 5 of one stream on a CPU: P, theta, r, s are the rows of ``out``."""
    from labelmem.engines.numba.combiner import label_weights
    from labelmem.engines.numba.label import label_step

    read = cast("CompiledRead", read)
    state = state.with_slots(1 + out.shape[1])
    # Hidden units in rows, as the kernel leaves them: only a loaded or widened state is copied.
    mu = np.ascontiguousarray(array(state.mu)[0].T)
    moved = np.empty_like(mu)
    before = (array(state.missed)[0], mu, row(state.r), row(state.s))
    seen = (logits, read.told("label"), read.scores_of_cells)
    label_step(label_weights(network), h, *before, *seen, partition, out, moved)
    return CombinerStep(theta=tensor(out[1]), mu=tensor(moved.T))


def missed_compiled(view: View, y: int) -> Tensor:
    """(1, 2) whether the best labels of r and s of one stream on a CPU missed ``y``."""
    from labelmem.engines.numba.label import missed_by

    return torch.tensor([[missed_by(row(scores), y) for scores in (view.r, view.s)]])


def observe_in_place(
    state: LabelState, step: CombinerStep, view: View, y: Tensor, mask: Tensor | None
) -> LabelState:
    """What is remembered of a recorded step whose mu lies in the spare room already."""
    from labelmem.engines.triton.commit import keep_many

    seen = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
    keep_many(seen, y, (view.r, view.s), (state.r, state.s), step.mu, state.mu, state.missed)
    return replace(state, mu=step.mu, spare=state.mu)
