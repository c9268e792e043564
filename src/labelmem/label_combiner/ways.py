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

from labelmem.combining import CombinerStep, View, misses
from labelmem.fast import Array, array, row, tensor
from labelmem.label_combiner.network import Network
from labelmem.label_combiner.state import LabelState
from labelmem.memory import MemoryRead
from labelmem.reading import LoneRead
from labelmem.trees import chosen

if TYPE_CHECKING:  # numba is imported when the first stream takes a step
    from labelmem.compiled.told import CompiledRead

__all__ = [
    "cell_many",
    "combine_compiled",
    "missed_compiled",
    "observe_in_place",
    "shared_many",
]


def shared_many(network: Network, h: Tensor, missed: Tensor) -> Tensor:
    """What all labels of a stream have in common, for many streams on a GPU."""
    from labelmem.kernels import label_shared

    weights = (network.weight_h, network.weight_flags, network.bias_input)
    return label_shared.shared_many(h, missed, *weights)


def cell_many(
    network: Network, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The next states and theta of many streams on a GPU."""
    from labelmem.kernels.label import label_step

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
    from labelmem.compiled.combiner import label_weights
    from labelmem.compiled.label import label_step

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
    from labelmem.compiled.label import missed_by

    return torch.tensor([[missed_by(row(scores), y) for scores in (view.r, view.s)]])


def observe_in_place(
    state: LabelState, step: CombinerStep, view: View, y: Tensor, mask: Tensor | None
) -> LabelState:
    """What is remembered of a recorded step: its mu is in the spare room already.

    So are r and s where fused kernels found them; then a kernel does the rest too.
    """
    room = state.room_for_scores(view.r.shape[1])
    assert room is not None and state.spare_r is not None and state.spare_s is not None
    for place, scores in zip(room, (view.r, view.s), strict=True):
        if place.data_ptr() != scores.data_ptr():
            place.copy_(scores)
    new, old = (step.mu, state.spare_r, state.spare_s), (state.mu, state.r, state.s)
    best_r, best_s = view.best, view.read.best if isinstance(view.read, LoneRead) else None
    if best_r is not None and best_s is not None:
        from labelmem.kernels.commit import keep_many

        seen = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
        keep_many(seen, y, (best_r, best_s), new, old, state.missed)
    else:
        missed = torch.stack([misses(view.r, y), misses(view.s, y)], dim=1).to(state.missed.dtype)
        for place, kept in zip(
            (*new, state.missed), chosen(mask, (*new, missed), (*old, state.missed)), strict=True
        ):
            place.copy_(kept)
    fields = ("mu", "r", "s", "spare", "spare_r", "spare_s")
    return replace(state, **dict(zip(fields, new + old, strict=True)))
