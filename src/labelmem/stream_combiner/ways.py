"""Shorter ways of a stream combiner with the same results.

One stream on a CPU is predicted and learned by numpy or by compiled kernels; many streams on a GPU
are by fused kernels.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labelmem.combining import View
from labelmem.fast import Array, array, arrays, compiled, tensor
from labelmem.fast import stream as short
from labelmem.memory import MemoryRead
from labelmem.stream_combiner.network import Network
from labelmem.stream_combiner.state import PAST, RATES, RATES_32, StreamState, StreamStep
from labelmem.trust import constant

__all__ = ["forward_many", "forward_one", "observe_many", "observe_one"]


def forward_many(network: Network, state: StreamState, view: View) -> StreamStep:
    """A step of many streams on a GPU."""
    from labelmem.kernels.stream import decide_many

    weights = dict(network.named_parameters()) | dict(network.named_buffers())
    h = view.h if network.sees_h else None
    own = (state.past, state.echo, state.mu)
    theta, s, guess, mu, best = decide_many(weights, *own, h, view.r, view.read)
    theta = theta[:, None].expand_as(view.r)
    corrected = view.read.spread(s, view.r.shape[1]) if network.correct else None
    return StreamStep(theta, mu, corrected, guess, best)


def forward_one(network: Network, state: StreamState, view: View) -> StreamStep:
    """A step of one stream on a CPU."""
    weights, lead = arrays(network), view.read.lead
    labels, r = _labels(view.read, lead), array(view.r)[0]
    inside = r[labels.names]
    past, echo, mu = array(state.past)[0], array(state.echo)[0], array(state.mu)[0]
    features = short.features_of(labels, inside) - weights["features_mean"]
    features /= weights["features_spread"]
    signals = short.signals_of(past, r, labels, inside) - weights["signals_mean"]
    signals /= weights["signals_spread"]
    h = array(view.h)[0] if network.sees_h else None
    theta, s, guess, mu = short.decide(weights, features, signals, labels.s, echo, mu, h)
    by_cell = np.zeros((2, view.read.label.shape[1]), r.dtype)
    by_cell[:, lead] = s, guess
    corrected = view.read.spread(tensor(by_cell[0]), len(r)) if network.correct else None
    shared = view.r.new_full((1, 1), theta).expand_as(view.r)
    return StreamStep(shared, tensor(mu), corrected, tensor(by_cell[1]))


def _labels(read: MemoryRead, lead: Array | slice) -> short.Labels:
    """What a read of one stream tells of its labels."""
    assert read.past is not None
    past = read.past
    told = (read.label, read.score, read.strength, past.writes, past.age, past.since_first)
    rows = (past.rates, past.cosine, past.size)
    return short.Labels(*(array(values)[0][lead] for values in (*told, *rows)))


def observe_many(
    state: StreamState, step: StreamStep, view: View, y: Tensor, mask: Tensor | None
) -> StreamState:
    """What many streams on a GPU remember of a step."""
    from labelmem.kernels.remember import remember_many

    assert step.guess is not None and step.best is not None
    rates = constant(RATES, y.device, step.mu.dtype)
    old = (state.mu, state.echo, state.past)
    told = (view.read, step.guess, step.best)
    return StreamState(*remember_many(*told, y, mask, rates, step.mu, old))


def observe_one(state: StreamState, step: StreamStep, view: View, y: int) -> StreamState:
    """What one stream on a CPU remembers of a step."""
    assert step.guess is not None
    if view.read.compiled and compiled(view.r.dtype == torch.float32):
        return _observe_compiled(state, step, view, y)
    assert view.read.past is not None
    lead, names, r = view.read.lead, array(view.read.label)[0], array(view.r)[0]
    own = np.flatnonzero(names == y)
    own = own if isinstance(lead, slice) else own[np.isin(own, lead)]
    slot = int(own[0]) if len(own) else -1
    age = int(array(view.read.past.age)[0, slot]) if slot >= 0 else 0
    best = int(r.argmax()) if len(r) else -1
    missed = best != y or r[best] <= 0
    past = short.remember(array(state.past)[0], RATES, slot < 0, age, bool(missed))
    return StreamState(step.mu, tensor(short.echo_of(array(step.guess)[0], slot)), tensor(past))


def _observe_compiled(state: StreamState, step: StreamStep, view: View, y: int) -> StreamState:
    """The same by a compiled kernel."""
    from labelmem.compiled.combiner import cells_of
    from labelmem.compiled.stream import remember

    assert step.guess is not None
    cells, time, _ = cells_of(view.read)
    past, echo = np.empty(PAST, np.float32), np.empty(2, np.float32)
    seen = (array(step.guess)[0], cells.names, cells.written, time, array(view.r)[0], y)
    remember(*seen, array(state.past)[0], RATES_32, past, echo)
    return StreamState(step.mu, tensor(echo), tensor(past))
