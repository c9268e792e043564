"""Shorter ways of a label combiner with the same results.

One stream on a CPU is predicted and learned by numpy or by compiled kernels; many streams on a GPU
are by fused kernels. Where steps are recorded, what comes next is put into spare room, which then
changes places with what it follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from labelmem.combining import CombinerStep, View, misses
from labelmem.fast import Array, array, arrays, row, tensor
from labelmem.fast import label as short
from labelmem.label_combiner.drift import DriftState, DriftStep, kernels, settled
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
    "observe_compiled",
    "observe_in_place",
    "shared_many",
    "step_one",
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


def step_one(network: Network, state: LabelState, h: Array, width: int) -> CombinerStep:
    """A step of one stream on a CPU, every label with a slot of its own."""
    weights = arrays(network)
    shared = weights["weight_h"] @ h + weights["weight_flags"] @ array(state.missed)[0]
    cell = short.Cell(
        weights["weight_mu"],
        weights["bias_mu"],
        weights["weight_scores"],
        shared + weights["bias_input"],
    )
    scores = np.stack([array(state.r)[0], array(state.s)[0]])
    mu = short.step_one(cell, array(state.mu)[0].T, scores)
    x = weights["weight_theta"] @ mu[:, 1 : 1 + width] + weights["bias_theta"]
    return CombinerStep(theta=tensor(1 / (1 + np.exp(-x))), mu=tensor(mu.T))


def combine_compiled(
    network: Network,
    state: LabelState | DriftState,
    h: Array,
    logits: Array,
    read: MemoryRead,
    partition: bool,
    out: Array,
) -> DriftStep:
    """Eq. 1, a step and Eq. 5 of one stream on a CPU, likewise."""
    read = cast("CompiledRead", read)
    weights, width = arrays(network), out.shape[1]
    drift = state
    if not isinstance(drift, DriftState) or not drift.holds(weights, width):
        drift = DriftState.begin(weights, settled(state).with_slots(1 + width))
    told = out if drift.base.shape[1] == width else np.empty((4, drift.base.shape[1]), np.float32)
    path, far_mu = np.empty_like(drift.path), np.empty_like(drift.far_mu)
    reach = kernels().drift_step(
        weights["weight_h"],
        weights["weight_flags"],
        weights["weight_scores"],
        weights["weight_mu"],
        weights["bias_input"],
        weights["bias_mu"],
        weights["weight_theta"],
        weights["bias_theta"].reshape(1),
        h,
        drift.missed,
        drift.origin,
        drift.base,
        drift.seen[: drift.count],
        drift.path,
        drift.far,
        drift.far_mu,
        drift.far_scores,
        drift.limit,
        logits,
        read.told("label"),
        read.scores_of_cells,
        partition,
        told,
        path,
        far_mu,
    )
    if told is not out:  # fewer labels are asked for than have states; the others have no scores
        out[:] = told[:, :width]
    return DriftStep(out[1], weights, drift, path, far_mu, float(reach))


def observe_compiled(step: DriftStep, view: View, y: int) -> DriftState:
    """What one stream on a CPU remembers of such a step."""
    names = cast("CompiledRead", view.read).told("label")
    return step.drift.after(step, row(view.r), row(view.s), names, y)


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
