"""The label combiner: its options, its weights, and a step of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from labelmem.combining import Combiner, CombinerState, CombinerStep, View, misses
from labelmem.engines.triton import fused
from labelmem.errors import ConfigError
from labelmem.fast import Array, alone
from labelmem.label_combiner import ways
from labelmem.label_combiner.network import Network
from labelmem.label_combiner.slots import activated, theta_of_labels
from labelmem.label_combiner.state import LabelState
from labelmem.memory import MemoryRead
from labelmem.trust import recording

__all__ = ["LabelCombiner"]

_UNITS = 64  # the most that the fused kernel holds at a time


class LabelCombiner(Network, Combiner, kind="label"):
    """The paper's combiner: one GRU cell shared by all labels, with one state per label and stream.

    ``mu_ty = GRU(mu_(t-1)y, [h_t, e_model, e_memory, r_(t-1)y, s_(t-1)y])`` and
    ``theta_ty = sigmoid(W mu_ty + b)``. W starts at zero and b at the logit of ``theta``, so that
    an untrained combiner is exactly LMN-fixed. What the labels share, the projection of h and of
    the two error flags, is computed once per step.

    Parameters
    ----------
    hidden
        Size of mu.
    theta
        The fixed weight of the memory from which training starts.
    active_threshold
        0 keeps one state per label, which is exact. Above 0, labels whose r and s never exceeded
        it share one background state: an approximation that makes the cost independent of the
        number of labels.
    seed
        Seeds the initial weights.

    Examples
    --------
    >>> combiner = LabelCombiner(hidden=8, theta=0.25).build(dim=4)
    >>> state = combiner.initial_state(streams=1, width=3)
    >>> combiner.step(state, torch.zeros(1, 4), width=3).theta
    tensor([[0.2500, 0.2500, 0.2500]], grad_fn=<SliceBackward0>)

    References
    ----------
    Labeled Memory Networks (AAAI 2018), Eq. 4.
    """

    def __init__(
        self,
        hidden: int = 16,
        theta: float = 0.5,
        active_threshold: float = 0.0,
        kind: str = "label",
        seed: int = 0,
    ) -> None:
        super().__init__(hidden, theta, seed)
        if not 0 <= active_threshold < 1:
            raise ConfigError(f"active_threshold is {active_threshold}; it must lie in [0, 1)")
        self.active_threshold = active_threshold

    def form(self) -> dict[str, Any]:
        """Hidden size and threshold decide the form of the states."""
        return super().form() | {"active_threshold": self.active_threshold}

    def make_weights(self, dim: int, generator: torch.Generator) -> None:
        """A GRU cell over h, flags and scores; theta's weight starts at zero."""
        inputs = {"weight_h": dim, "weight_flags": 2, "weight_scores": 2, "weight_mu": self.hidden}
        for name, columns in inputs.items():
            self.register_parameter(name, self.uniform(3 * self.hidden, columns, generator))
        for name in ("bias_input", "bias_mu"):
            self.register_parameter(name, nn.Parameter(torch.zeros(3 * self.hidden)))
        self.weight_theta = nn.Parameter(torch.zeros(self.hidden))

    def forget_training(self) -> None:
        """Theta depends on nothing again."""
        self.weight_theta.zero_()

    def initial_state(self, streams: int, width: int) -> LabelState:
        """State at t = 0: nothing predicted yet, so scores and flags are zero."""
        slots = 1 if self.active_threshold else 1 + width
        zeros = self.weight_theta.new_zeros
        ids = torch.full((streams, 1), -1, device=self.weight_theta.device)
        return LabelState(
            mu=zeros(streams, slots, self.hidden),
            r=zeros(streams, slots),
            s=zeros(streams, slots),
            missed=zeros(streams, 2),
            ids=ids if self.active_threshold else None,
        )

    def forward(self, state: CombinerState, view: View) -> CombinerStep:
        """Eq. 4: it sees h now, and the scores and errors of one step ago. Pure."""
        assert isinstance(state, LabelState)
        return self.step(state, view.h, view.r.shape[1])

    def step(self, state: LabelState, h: Tensor, width: int) -> CombinerStep:
        """Eq. 4 for the first ``width`` labels, given h (n, d)."""
        if state.ids is None:  # labels that joined late start from the background state
            state = state.with_slots(1 + width)
        spare = state.spare if recording() else None
        shared = self.shared(h, state.missed)
        mu, theta = self.cell(state.mu, state.r, state.s, shared, spare)
        return CombinerStep(theta=theta_of_labels(theta, state.ids, width), mu=mu)

    def cell(
        self, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Eq. 4: the next states (n, A, hidden), and theta (n, A).

        ``shared`` (n, 3 hidden) is what all labels have in common; ``out`` is where a fused kernel
        puts the states.
        """
        if self.hidden <= _UNITS and fused(shared, mu):
            return ways.cell_many(self, mu, r, s, shared, out)
        return super().cell(mu, r, s, shared)

    def compiles(self, logits: Tensor) -> bool:
        """Kernels are made for weights of the same kind as the logits, and a slot per label."""
        exact = not self.active_threshold
        return exact and self.weight_theta.dtype == logits.dtype and logits.shape[1] > 0

    def combine_one(
        self,
        state: CombinerState,
        h: Array,
        logits: Array,
        read: MemoryRead,
        partition: bool,
        out: Array,
    ) -> CombinerStep:
        """The same for one stream on a CPU, by a compiled kernel."""
        assert isinstance(state, LabelState)
        return ways.combine_compiled(self, state, h, logits, read, partition, out)

    def observe(
        self,
        state: CombinerState,
        step: CombinerStep,
        view: View,
        y: Tensor,
        mask: Tensor | None,
    ) -> LabelState:
        """Make ``step`` current and remember its scores and whether they missed y."""
        assert isinstance(state, LabelState)
        if step.mu is state.spare:  # a recorded step by a fused kernel
            return ways.observe_in_place(state, step, view, y, mask)
        if view.read.compiled and alone(view.r):
            missed = ways.missed_compiled(view, int(y))
        else:
            missed = torch.stack([misses(view.r, y), misses(view.s, y)], dim=1)
        return self.commit(state, step, view.r, view.s, missed, mask)

    def commit(
        self,
        state: LabelState,
        step: CombinerStep,
        r: Tensor,
        s: Tensor,
        missed: Tensor,
        mask: Tensor | None = None,
    ) -> LabelState:
        """Make ``step`` current for the masked streams and remember its scores for the next one.

        Parameters
        ----------
        r, s
            (n, W) scores of model and memory at this step.
        missed
            (n, 2) whether their own best labels missed the truth.
        """
        old = state.with_slots(step.mu.shape[1])
        new = replace(old, mu=step.mu, missed=missed.to(step.mu.dtype))
        if new.ids is None:  # nothing named the background, nor labels that joined since
            beside = (1, old.mu.shape[1] - 1 - r.shape[1])
            new = replace(new, r=pad(r, beside), s=pad(s, beside))
        else:
            new = activated(new, r, s, self.active_threshold, mask)
            old = old.with_slots(new.mu.shape[1])
        return replace(new.where(mask, old), spare=state.spare)
