"""Faster steps of a stream combiner with the same results: compiled kernels, and fused kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from torch import Tensor

from labelmem.combining import View
from labelmem.fast import array, tensor
from labelmem.stream_combiner.network import Network
from labelmem.stream_combiner.state import PAST, RATES, RATES_32, StreamState, StreamStep
from labelmem.trust import constant

if TYPE_CHECKING:  # numba is imported when the first stream takes a step
    from labelmem.engines.numba.grouped import GroupedRead
    from labelmem.engines.numba.told import CompiledRead

__all__ = ["forward_many", "observe_compiled", "observe_many"]


def forward_many(network: Network, state: StreamState, view: View) -> StreamStep:
    """A step of many streams on a GPU."""
    from labelmem.engines.triton.stream import decide_many

    weights = dict(network.named_parameters()) | dict(network.named_buffers())
    h = view.h if network.sees_h else None
    own = (state.past, state.echo, state.mu)
    theta, s, guess, mu, best = decide_many(weights, *own, h, view.r, view.read)
    theta = theta[:, None].expand_as(view.r)
    corrected = view.read.spread(s, view.r.shape[1]) if network.correct else None
    return StreamStep(theta, mu, corrected, guess, best)


def observe_many(
    state: StreamState, step: StreamStep, view: View, y: Tensor, mask: Tensor | None
) -> StreamState:
    """What many streams on a GPU remember of a step."""
    from labelmem.engines.triton.remember import remember_many

    assert step.guess is not None and step.best is not None
    rates = constant(RATES, y.device, step.mu.dtype)
    old = (state.mu, state.echo, state.past)
    told = (view.read, step.guess, step.best)
    return StreamState(*remember_many(*told, y, mask, rates, step.mu, old))


def observe_compiled(state: StreamState, step: StreamStep, view: View, y: int) -> StreamState:
    """What one stream on a CPU remembers of a step."""
    from labelmem.engines.numba.combiner import cells_of
    from labelmem.engines.numba.stream import remember

    assert step.guess is not None
    read = cast("CompiledRead | GroupedRead", view.read)
    cells, time, _ = cells_of(read)
    past, echo = np.empty(PAST, np.float32), np.empty(2, np.float32)
    seen = (read.of_leading(step.guess), cells.names, cells.written, time, array(view.r)[0], y)
    remember(*seen, array(state.past)[0], RATES_32, past, echo)
    return StreamState(step.mu, tensor(echo), tensor(past))
