"""The stream combiner: its options, its weights, and a step of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from labelmem.combining import Combiner, CombinerState, CombinerStep, View, gru
from labelmem.engines.triton import fused
from labelmem.fast import Array, alone, array, tensor
from labelmem.memory import MemoryRead
from labelmem.stream_combiner import ways
from labelmem.stream_combiner.network import Network
from labelmem.stream_combiner.state import PAST, StreamState, StreamStep, echo_of, remembered
from labelmem.stream_look import FEATURES, SIGNALS, Look, blind_columns, look_at, slot_of

if TYPE_CHECKING:  # numba is imported when the first stream takes a step
    from labelmem.engines.numba.grouped import GroupedRead
    from labelmem.engines.numba.told import CompiledRead

__all__ = ["StreamCombiner"]

_UNITS = 256  # the most, of any layer, that fused kernels hold at a time
_CELLS = 1024  # and the most positions


class StreamCombiner(Network, Combiner, kind="stream"):
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

    ECHO = 4

    sees_past = True

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

    def _outer(self) -> list[nn.Parameter]:
        """The weights that are zero until training moves them."""
        if not self.correct:
            return [self.theta_outer]
        return [self.theta_outer, self.score_plain, self.score_outer, self.score_moved]

    @property
    def untrained(self) -> bool:
        """Whether theta and scores depend on nothing that the combiner sees."""
        return not any(bool(weight.any()) for weight in self._outer())

    def forget_training(self) -> None:
        """Theta and scores depend on nothing again."""
        for weight in self._outer():
            weight.zero_()

    def initial_state(self, streams: int, width: int) -> StreamState:
        """Nothing observed yet."""
        zeros = self.theta_outer.new_zeros
        return StreamState(zeros(streams, self.hidden), zeros(streams, 2), zeros(streams, PAST))

    def look(self, past: Tensor, view: View) -> Look:
        """All that the network sees of a step, each number of the order of one."""
        return look_at(past, view)

    def forward(self, state: CombinerState, view: View) -> CombinerStep:
        """Theta of the streams and the corrected belief of the memory. Pure."""
        assert isinstance(state, StreamState)
        if self._fused(view):
            return ways.forward_many(self, state, view)
        look = self.scaled(self.look(state.past, view))
        score, log_s = self.guess(look)
        seen = self.seen(look, log_s, state.echo, view.h)
        from_input, from_mu, bias_input, bias_mu = self.gru.all_weights[0]
        mu = gru(seen @ from_input.T + bias_input, state.mu @ from_mu.T + bias_mu, state.mu)
        guess = log_s.exp() * look.leads
        theta, s = self.decide(look, score, mu, state.echo)
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
        from labelmem.engines.numba.combiner import cells_of, weights_of
        from labelmem.engines.numba.stream import stream_step

        assert isinstance(state, StreamState)
        told = cast("CompiledRead | GroupedRead", read)
        cells, time, fades = cells_of(told)
        guess, mu = np.empty_like(cells.score), np.empty(self.hidden, np.float32)
        own = (array(state.mu)[0], array(state.echo)[0], array(state.past)[0])
        seen = (cells, logits, h if self.sees_h else h[:0], own, time, fades)
        stream_step(weights_of(self), *seen, self.correct, partition, out, guess, mu)
        return StreamStep(tensor(out[1]), tensor(mu), guess=told.at_cells(guess))

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
        if mask is None and view.read.compiled and alone(view.r) and not torch.is_grad_enabled():
            return ways.observe_compiled(state, step, view, int(y))
        if step.best is not None:
            return ways.observe_many(state, step, view, y, mask)
        slot = slot_of(view.read, y)
        echo = echo_of(step.guess.detach(), slot)
        past = self.remember(state.past, view, y, slot)
        return StreamState(step.mu, echo, past).where(mask, state)

    def remember(self, past: Tensor, view: View, y: Tensor, slot: Tensor) -> Tensor:
        """How labels came (n, PAST), once the labels y (n,) at the positions ``slot`` are known."""
        return remembered(past, view, y, slot)
