"""A combiner with one recurrent state per stream, and a correction per label in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelmem.combining import Combiner, CombinerState, CombinerStep, View, gru, misses
from labelmem.fast import Array, alone, array, arrays, compiled, tensor
from labelmem.fast import stream as short
from labelmem.kernels import fused
from labelmem.memory import MemoryRead
from labelmem.stream_look import (
    FEATURES,
    LOWEST,
    SIGNALS,
    Look,
    Spread,
    blind_columns,
    log,
    look_at,
    slot_of,
)
from labelmem.trust import constant

__all__ = ["StreamCombiner", "StreamState"]

_RATES = (0.7, 0.9, 0.97)  # shares of the last few, ten and thirty labels
_RATES_32 = np.array(_RATES, np.float32)
_UNITS = 256  # the most, of any layer, that fused kernels hold at a time
_CELLS = 1024  # and the most positions
_NOT_THERE = -8.0  # what a label that was not in memory counts as, in nats


@dataclass(frozen=True)
class StreamState(CombinerState):
    """Committed state of ``n`` streams."""

    mu: Tensor
    """(n, hidden)."""
    echo: Tensor
    """(n, 2) how the last guess about the labels in memory went: whether it hit, and its log s."""
    past: Tensor
    """(n, PAST) how labels came so far: their number; of the last one, whether it was new to memory
    and whether the model missed it; running shares of new ones and of immediate repeats."""


@dataclass(frozen=True)
class StreamStep(CombinerStep):
    """A step that also remembers its first guess."""

    guess: Tensor | None = None
    """(n, K) s from the labels' features alone, at the leading cells."""
    best: Tensor | None = None
    """(n,) the model's own best label, -1 for none, where fused kernels have looked for it."""


class StreamCombiner(Combiner, kind="stream"):
    """Theta for the whole stream, and labels in memory scored anew by how they came.

    First, a small network scores each label *in memory* from its weight, age, rates, regularity,
    the match of each part of the key, r, and what the stream is like: ``s_y exp(f_y)``. Then a GRU
    cell takes in what the stream is like and how the last such guess went; its state mu moves the
    weights of the labels' features a little, and gives one theta for all labels. The cost grows
    with the labels in memory, not with all labels. Everything learned starts at zero, so an
    untrained combiner is LMN-fixed.

    No part of the recurrence depends on the corrected s, so that a recorded stream is unrolled at
    once in training.

    Parameters
    ----------
    hidden
        Size of mu.
    theta
        The fixed weight of the memory from which training starts.
    correct
        Whether labels in memory are scored anew.
    rescorer
        Hidden units of the network that scores.
    sees_h
        Whether the GRU sees h too; worth it where the model was trained on much data.
    dropout
        Share of the scorer's hidden units that is dropped in training.
    blind
        What it must do without, for finding out what each of these brings: ``recency``, ``match``,
        ``model`` or ``novelty`` (:data:`labelmem.stream_look.GROUPS`).
    parts
        How many parts the key has; the adapter says so.
    seed
        Seeds the initial weights.

    Examples
    --------
    >>> Combiner(kind="stream", hidden=8).form()["rescorer"]
    32
    """

    PAST = 3 + 2 * len(_RATES)
    ECHO = 4

    sees_past = True
    gru: nn.GRU
    features_mean: Tensor
    features_spread: Tensor
    signals_mean: Tensor
    signals_spread: Tensor

    def __init__(
        self,
        hidden: int = 16,
        theta: float = 0.5,
        correct: bool = True,
        rescorer: int = 32,
        sees_h: bool = False,
        dropout: float = 0.0,
        blind: Sequence[str] = (),
        parts: int | None = None,
        kind: str = "stream",
        seed: int = 0,
    ) -> None:
        super().__init__(hidden, theta, seed)
        self.correct, self.rescorer, self.sees_h = correct, rescorer, sees_h
        self.dropout = nn.Dropout(dropout)
        self.blind = tuple(blind)
        blind_columns(self.blind, 1)  # refuses what it does not know
        self.parts = parts

    def form(self) -> dict[str, Any]:
        """All options decide the form of the weights."""
        options: dict[str, Any] = {
            "correct": self.correct,
            "rescorer": self.rescorer,
            "sees_h": self.sees_h,
        }
        if self.blind:
            options["blind"] = list(self.blind)
        return super().form() | options | {"parts": self.parts}

    def make_weights(self, dim: int, generator: torch.Generator) -> None:
        """The scorer, the GRU cell, and the way from its state to scores and theta."""
        parts = self.parts or 1
        features, signals = FEATURES + 2 * parts, SIGNALS + 2 * parts
        seen = signals + self.ECHO + (dim if self.sees_h else 0)
        with torch.random.fork_rng(devices=[]):  # its own first weights are drawn for nothing
            self.gru = nn.GRU(seen, self.hidden, batch_first=True)
        self.theta_inner = self.uniform(self.rescorer, self.hidden + signals + self.ECHO, generator)
        self.theta_outer = nn.Parameter(torch.zeros(self.rescorer))
        for name, parameter in self.gru.named_parameters():
            size = parameter.shape[1] if parameter.ndim == 2 else 1
            drawn = self.uniform(parameter.shape[0], size, generator).data
            setattr(self.gru, name, nn.Parameter(drawn.view_as(parameter)))
        if self.correct:
            self.score_plain = nn.Parameter(torch.zeros(features))
            self.score_inner = self.uniform(self.rescorer, features, generator)
            self.score_stream = self.uniform(self.rescorer, signals, generator)
            self.score_bias = nn.Parameter(torch.zeros(self.rescorer))
            self.score_middle = self.uniform(self.rescorer, self.rescorer, generator)
            self.score_outer = nn.Parameter(torch.zeros(self.rescorer))
            self.score_moved = nn.Parameter(torch.zeros(self.hidden, features))
        for name, size in (("features", features), ("signals", signals)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_spread", torch.ones(size))

    def forget_training(self) -> None:
        """Theta and scores depend on nothing again."""
        self.theta_outer.zero_()
        if self.correct:
            for weight in (self.score_plain, self.score_outer, self.score_moved):
                weight.zero_()

    def initial_state(self, streams: int, width: int) -> StreamState:
        """Nothing observed yet."""
        zeros = self.theta_outer.new_zeros
        return StreamState(
            zeros(streams, self.hidden), zeros(streams, 2), zeros(streams, self.PAST)
        )

    def forward(self, state: CombinerState, view: View) -> CombinerStep:
        """Theta of the streams and the corrected belief of the memory. Pure."""
        assert isinstance(state, StreamState)
        if alone(view.h) and not torch.is_grad_enabled() and not self.training:
            return self._forward_one(state, view)
        if self._fused(view):
            return self._forward_many(state, view)
        look = self.scaled(self.look(state.past, view))
        score, log_s = self._guess(look)
        seen = self._seen(look, log_s, state.echo, view.h)
        from_input, from_mu, bias_input, bias_mu = self.gru.all_weights[0]
        mu = gru(seen @ from_input.T + bias_input, state.mu @ from_mu.T + bias_mu, state.mu)
        guess = log_s.exp() * look.leads
        theta, s = self._decide(look, score, mu, state.echo)
        theta = theta[:, None].expand_as(view.r)
        if not self.correct:
            return StreamStep(theta, mu, guess=guess)
        return StreamStep(theta, mu, view.read.spread(s, view.r.shape[1]), guess)

    def _fused(self, view: View) -> bool:
        """Whether a step of many streams on a GPU is taken by fused kernels."""
        most = max(self.hidden, self.rescorer, view.h.shape[1] if self.sees_h else 0)
        fits = most <= _UNITS and 0 < view.read.label.shape[1] <= _CELLS and view.r.shape[1] > 0
        plain = torch.is_grad_enabled() or self.training
        return view.read.lone and fits and not plain and fused(view.h, view.r, self.theta_outer)

    def _forward_many(self, state: StreamState, view: View) -> StreamStep:
        """The same for many streams on a GPU."""
        from labelmem.kernels.stream import decide_many

        weights = dict(self.named_parameters()) | dict(self.named_buffers())
        h = view.h if self.sees_h else None
        own = (state.past, state.echo, state.mu)
        theta, s, guess, mu, best = decide_many(weights, *own, h, view.r, view.read)
        theta = theta[:, None].expand_as(view.r)
        corrected = view.read.spread(s, view.r.shape[1]) if self.correct else None
        return StreamStep(theta, mu, corrected, guess, best)

    @property
    def gives_s(self) -> bool:
        """The corrected scores of the labels in memory take the place of the memory's."""
        return self.correct

    def compiles(self, logits: Tensor) -> bool:
        """Kernels are made for weights of the same kind as the logits, on a CPU."""
        weights = self.theta_outer
        return weights.dtype == logits.dtype and logits.shape[1] > 0 and not self.training

    def combine_one(
        self,
        state: CombinerState,
        h: Array,
        logits: Array,
        read: MemoryRead,
        partition: bool,
        out: Array,
    ) -> StreamStep:
        """The same for one stream on a CPU, by a compiled kernel."""
        from labelmem.compiled.combiner import cells_of, weights_of
        from labelmem.compiled.stream import stream_step

        assert isinstance(state, StreamState)
        cells, time, fades = cells_of(read)
        guess, mu = np.empty_like(cells.score), np.empty(self.hidden, np.float32)
        own = (array(state.mu)[0], array(state.echo)[0], array(state.past)[0])
        seen = (cells, logits, h if self.sees_h else h[:0], own, time, fades)
        stream_step(weights_of(self), *seen, self.correct, partition, out, guess, mu)
        return StreamStep(tensor(out[1]), tensor(mu), guess=tensor(guess))

    def _forward_one(self, state: StreamState, view: View) -> StreamStep:
        """The same for one stream on a CPU."""
        weights, lead = arrays(self), view.read.lead
        labels, r = _labels(view.read, lead), array(view.r)[0]
        inside = r[labels.names]
        past, echo, mu = array(state.past)[0], array(state.echo)[0], array(state.mu)[0]
        features = short.features_of(labels, inside) - weights["features_mean"]
        features /= weights["features_spread"]
        signals = short.signals_of(past, r, labels, inside) - weights["signals_mean"]
        signals /= weights["signals_spread"]
        h = array(view.h)[0] if self.sees_h else None
        theta, s, guess, mu = short.decide(weights, features, signals, labels.s, echo, mu, h)
        by_cell = np.zeros((2, view.read.label.shape[1]), r.dtype)
        by_cell[:, lead] = s, guess
        corrected = view.read.spread(tensor(by_cell[0]), len(r)) if self.correct else None
        shared = view.r.new_full((1, 1), theta).expand_as(view.r)
        return StreamStep(shared, tensor(mu), corrected, tensor(by_cell[1]))

    def observe(
        self,
        state: CombinerState,
        step: CombinerStep,
        view: View,
        y: Tensor,
        mask: Tensor | None,
    ) -> StreamState:
        """Commit mu and remember how the labels came."""
        assert isinstance(state, StreamState) and isinstance(step, StreamStep)
        assert step.guess is not None
        if alone(view.h) and not torch.is_grad_enabled() and mask is None:
            return self._observe_one(state, step, view, int(y))
        if step.best is not None:
            return self._observe_many(state, step, view, y, mask)
        slot = slot_of(view.read, y)
        echo = _echo(step.guess.detach(), slot)
        past = self.remember(state.past, view, y, slot)
        return StreamState(step.mu, echo, past).where(mask, state)

    def _observe_many(
        self, state: StreamState, step: StreamStep, view: View, y: Tensor, mask: Tensor | None
    ) -> StreamState:
        """The same for many streams on a GPU."""
        from labelmem.kernels.remember import remember_many

        assert step.guess is not None and step.best is not None
        rates = constant(_RATES, y.device, step.mu.dtype)
        old = (state.mu, state.echo, state.past)
        told = (view.read, step.guess, step.best)
        return StreamState(*remember_many(*told, y, mask, rates, step.mu, old))

    def _observe_one(self, state: StreamState, step: StreamStep, view: View, y: int) -> StreamState:
        """The same for one stream on a CPU."""
        assert step.guess is not None
        if view.read.compiled and compiled(view.r.dtype == torch.float32):
            return self._remember_compiled(state, step, view, y)
        assert view.read.past is not None
        lead, names, r = view.read.lead, array(view.read.label)[0], array(view.r)[0]
        own = np.flatnonzero(names == y)
        own = own if isinstance(lead, slice) else own[np.isin(own, lead)]
        slot = int(own[0]) if len(own) else -1
        age = int(array(view.read.past.age)[0, slot]) if slot >= 0 else 0
        best = int(r.argmax()) if len(r) else -1
        missed = best != y or r[best] <= 0
        past = short.remember(array(state.past)[0], _RATES, slot < 0, age, bool(missed))
        return StreamState(step.mu, tensor(short.echo_of(array(step.guess)[0], slot)), tensor(past))

    def _remember_compiled(
        self, state: StreamState, step: StreamStep, view: View, y: int
    ) -> StreamState:
        """The same by a compiled kernel."""
        from labelmem.compiled.combiner import cells_of
        from labelmem.compiled.stream import remember

        assert step.guess is not None
        cells, time, _ = cells_of(view.read)
        past, echo = np.empty(self.PAST, np.float32), np.empty(2, np.float32)
        seen = (array(step.guess)[0], cells.names, cells.written, time, array(view.r)[0], y)
        remember(*seen, array(state.past)[0], _RATES_32, past, echo)
        return StreamState(step.mu, tensor(echo), tensor(past))

    @torch.no_grad()
    def remember(self, past: Tensor, view: View, y: Tensor, slot: Tensor) -> Tensor:
        """How labels came (n, PAST), once the labels y (n,) at the positions ``slot`` are known."""
        assert view.read.past is not None
        new = (slot < 0).to(past.dtype)
        age = _at(view.read.past.age, slot, 0)
        rates = constant(_RATES, past.device, past.dtype)
        k = len(_RATES)
        novelty = rates * past[:, 3 : 3 + k] + (1 - rates) * new[:, None]
        again = (age == 1).to(past.dtype)[:, None]
        repeats = rates * past[:, 3 + k :] + (1 - rates) * again
        last = torch.stack([past[:, 0] + 1, new, misses(view.r, y).to(past.dtype)], dim=1)
        return torch.cat([last, novelty, repeats], dim=1)

    def look(self, past: Tensor, view: View) -> Look:
        """All that the network sees of a step, each number of the order of one."""
        return look_at(past, view)

    def scaled(self, look: Look) -> Look:
        """The same in the units that :meth:`standardise` found."""
        features = (look.features - self.features_mean) / self.features_spread
        signals = (look.signals - self.signals_mean) / self.signals_spread
        return Look(features * look.leads[..., None], signals, look.base, look.leads)

    @torch.no_grad()
    def standardise(self, looks: Iterable[tuple[Look, Tensor]]) -> None:
        """Bring what is seen in ``looks``, where their masks say so, to mean 0 and spread 1.

        What the combiner is blind to gets an infinite spread: it is always 0.
        """
        spreads = {"features": Spread(), "signals": Spread()}
        for look, mask in looks:
            spreads["features"].add(look.features[look.leads & mask[..., None]])
            spreads["signals"].add(look.signals[mask])
        for (name, spread), blind in zip(
            spreads.items(), blind_columns(self.blind, self.parts or 1), strict=True
        ):
            if spread.rows:
                mean, wide = spread.found()
                wide[blind] = torch.inf
                getattr(self, f"{name}_mean").copy_(mean)
                getattr(self, f"{name}_spread").copy_(wide)

    def unroll(self, look: Look, slot: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor]:
        """Theta (n, T) and the corrected s (n, T, K) of recorded streams, all steps at once.

        Parameters
        ----------
        look
            Of all steps, (n, T, …), in the units of :meth:`scaled`.
        slot
            (n, T) the position of the true label among the labels in memory, -1 for a new one.
        h
            (n, T, d) the model's hidden vectors, if they are seen.
        """
        score, log_s = self._guess(look)
        echo = _echo((log_s.exp() * look.leads).detach(), slot)
        before = torch.cat([torch.zeros_like(echo[:, :1]), echo[:, :-1]], dim=1)
        mu, _ = self.gru(self._seen(look, log_s, before, h))
        return self._decide(look, score, mu, before)

    def _guess(self, look: Look) -> tuple[Tensor, Tensor]:
        """Scores of the labels from their features alone, and the log s they make."""
        score = look.base
        if self.correct:
            shared = look.signals @ self.score_stream.T + self.score_bias
            inner = torch.relu(look.features @ self.score_inner.T + shared[..., None, :])
            inner = torch.relu(self.dropout(inner) @ self.score_middle.T)
            score = score + look.features @ self.score_plain + inner @ self.score_outer
        return score, _log_softmax(score, look.leads)

    def _seen(self, look: Look, log_s: Tensor, echo: Tensor, h: Tensor | None) -> Tensor:
        """What enters the GRU cell."""
        seen = [look.signals, echo, *_spread_of(log_s.detach(), look.leads)]
        return torch.cat([*seen, h] if self.sees_h and h is not None else seen, dim=-1)

    def _decide(self, look: Look, score: Tensor, mu: Tensor, echo: Tensor) -> tuple[Tensor, Tensor]:
        """Theta and s, the labels' features weighed as mu has it."""
        if self.correct:
            moved = mu @ self.score_moved
            score = score + (look.features @ moved[..., None])[..., 0]
        log_s = _log_softmax(score, look.leads)
        seen = [mu, look.signals, echo, *_spread_of(log_s, look.leads)]
        inner = torch.relu(torch.cat(seen, dim=-1) @ self.theta_inner.T)
        theta = torch.sigmoid(inner @ self.theta_outer + self.bias_theta)
        return theta, log_s.exp() * look.leads


def _labels(read: MemoryRead, lead: Array | slice) -> short.Labels:
    """What a read of one stream tells of its labels."""
    assert read.past is not None
    past = read.past
    told = (read.label, read.score, read.strength, past.writes, past.age, past.since_first)
    rows = (past.rates, past.cosine, past.size)
    return short.Labels(*(array(values)[0][lead] for values in (*told, *rows)))


def _echo(guess: Tensor, slot: Tensor) -> Tensor:
    """(…, 2) whether the first guess hit, and its log s of the label, once that is known."""
    known = slot >= 0
    log_s = torch.where(known, log(_at(guess, slot, 0.0)).clamp(min=_NOT_THERE), _NOT_THERE)
    if not guess.shape[-1]:
        hit = torch.zeros_like(known)
    else:
        hit = known & (guess.argmax(dim=-1) == slot)
    return torch.stack([hit.to(guess.dtype), log_s / 4], dim=-1)


def _at(values: Tensor, slot: Tensor, missing: float) -> Tensor:
    """Values (…, K) at the slots (…,), ``missing`` where a slot is -1."""
    if not values.shape[-1]:
        return torch.full(slot.shape, missing, dtype=values.dtype, device=values.device)
    found = values.gather(-1, slot.clamp(min=0)[..., None])[..., 0]
    return torch.where(slot >= 0, found, torch.full_like(found, missing))


def _log_softmax(score: Tensor, leads: Tensor) -> Tensor:
    """Normalised over the labels in memory; 0 where there is no label, or no memory."""
    empty = ~leads.any(dim=-1, keepdim=True)
    score = score.masked_fill(~leads, -torch.inf).masked_fill(empty, 0.0)
    return torch.log_softmax(score, dim=-1).masked_fill(~leads, 0.0)


def _spread_of(log_s: Tensor, leads: Tensor) -> tuple[Tensor, Tensor]:
    """How undecided s is: its entropy and largest logarithm, (…, 1) each, 0 without memory."""
    s = log_s.exp() * leads
    entropy = -(s * log_s).sum(dim=-1, keepdim=True)
    if not log_s.shape[-1]:
        return entropy, entropy
    top = log_s.masked_fill(~leads, LOWEST).amax(dim=-1, keepdim=True)
    return entropy / 2, torch.where(leads.any(dim=-1, keepdim=True), top, 0.0) / 2
