"""The paper's combiner: a recurrent state for every label (Eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelmem.beside import Beside
from labelmem.combining import Combiner, CombinerState, CombinerStep, View, gru, misses
from labelmem.errors import ConfigError
from labelmem.fast import Array, alone, array, arrays, compiled, row, tensor
from labelmem.fast.label import Cell, step_one
from labelmem.kernels import fused
from labelmem.memory import MemoryRead
from labelmem.reading import LoneRead
from labelmem.trust import recording

__all__ = ["LabelCombiner", "LabelState"]

_UNITS = 64  # the most that the fused kernel holds at a time
_BACKGROUND = 0  # the slot of the state that all labels without a slot of their own share


@dataclass(frozen=True)
class LabelState(CombinerState):
    """Committed state of ``n`` streams over ``A`` slots; slot 0 is the background state.

    Without ``ids`` slot ``1 + y`` belongs to label y. With ``ids`` (n, A) a slot belongs to the
    label it names, -1 for none.
    """

    mu: Tensor
    """(n, A, hidden)."""
    r: Tensor
    """(n, A) the model's score of the slot's label one step ago."""
    s: Tensor
    """(n, A) the memory's score of the slot's label one step ago."""
    missed: Tensor
    """(n, 2) whether the model's and the memory's own best label was wrong one step ago."""
    ids: Tensor | None = None
    spare: Tensor | None = None
    """Room for the next mu, where steps are recorded; no part of what is remembered."""
    spare_r: Tensor | None = None
    """Room for the next r, likewise; where no label has its score it is zero."""
    spare_s: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved."""
        own = super().tensors()
        return {name: x for name, x in own.items() if not name.startswith("spare")}

    def with_spare(self, slots: int) -> LabelState:
        """The same with room for the next mu, r and s, and at least so many slots."""
        state = _with_slots(self, slots)
        if state.spare is not None and state.spare.shape == state.mu.shape:
            return state
        held = {name: getattr(state, name).contiguous() for name in ("mu", "r", "s")}
        return replace(
            state,
            **held,
            spare=torch.empty_like(held["mu"]),
            spare_r=torch.zeros_like(held["r"]),
            spare_s=torch.zeros_like(held["s"]),
        )


class LabelCombiner(Combiner, kind="label"):
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

    weight_h: nn.Parameter
    weight_flags: nn.Parameter
    weight_scores: nn.Parameter
    weight_mu: nn.Parameter
    bias_input: nn.Parameter
    bias_mu: nn.Parameter
    weight_theta: nn.Parameter
    bias_theta: nn.Parameter

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

    def ahead(self, state: CombinerState, h: Tensor, width: int) -> Beside[CombinerStep]:
        """It looks at nothing but h and what it remembers."""
        assert isinstance(state, LabelState)
        return Beside(lambda: self.step(state, h, width), h.device, given=h)

    def room(self, state: CombinerState, width: int) -> tuple[Tensor, Tensor] | None:
        """In a recording they are remembered where they are put."""
        assert isinstance(state, LabelState)
        if state.spare_r is None or state.spare_s is None or not recording():
            return None
        return state.spare_r[:, 1 : 1 + width], state.spare_s[:, 1 : 1 + width]

    def step(self, state: LabelState, h: Tensor, width: int) -> CombinerStep:
        """Eq. 4 for the first ``width`` labels, given h (n, d)."""
        if state.ids is None:  # labels that joined late start from the background state
            state = _with_slots(state, 1 + width)
            if alone(h) and not torch.is_grad_enabled():
                return self._step_one(state, array(h)[0], width)
        spare = state.spare if recording() else None
        shared = self.shared(h, state.missed)
        mu, theta = self.cell(state.mu, state.r, state.s, shared, spare)
        return CombinerStep(theta=self._spread(theta, state.ids, width), mu=mu)

    def shared(self, h: Tensor, missed: Tensor) -> Tensor:
        """(…, 3 hidden) what h and the two flags put in: one product per step, not per label."""
        if h.ndim == 2 and fused(h, missed) and not torch.is_grad_enabled():
            from labelmem.kernels.label_shared import shared_many

            weights = (self.weight_h, self.weight_flags, self.bias_input)
            return shared_many(h, missed, *weights)
        return h @ self.weight_h.T + missed @ self.weight_flags.T + self.bias_input

    def cell(
        self, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Eq. 4: the next states (n, A, hidden), put into ``out`` if it is given, and theta (n, A).

        ``shared`` (n, 3 hidden) is what all labels have in common.
        """
        if self.hidden <= _UNITS and fused(shared, mu):
            from labelmem.kernels.label import label_step

            return label_step(mu, r, s, shared, self.cell_weights(), out)
        own = torch.stack([r, s], dim=-1) @ self.weight_scores.T
        mu = gru(shared[:, None] + own, mu @ self.weight_mu.T + self.bias_mu, mu)
        theta = torch.sigmoid(mu @ self.weight_theta + self.bias_theta)
        return mu if out is None else out.copy_(mu), theta

    def cell_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """What :meth:`cell` is made of, as kernels take it."""
        mixing = (self.weight_mu, self.bias_mu, self.weight_scores)
        return (*mixing, self.weight_theta, self.bias_theta)

    def _step_one(self, state: LabelState, h: Array, width: int) -> CombinerStep:
        """The same for one stream on a CPU, every label with a slot of its own."""
        weights = arrays(self)
        shared = weights["weight_h"] @ h + weights["weight_flags"] @ array(state.missed)[0]
        cell = Cell(
            weights["weight_mu"],
            weights["bias_mu"],
            weights["weight_scores"],
            shared + weights["bias_input"],
        )
        scores = np.stack([array(state.r)[0], array(state.s)[0]])
        mu = step_one(cell, array(state.mu)[0].T, scores)
        x = weights["weight_theta"] @ mu[:, 1 : 1 + width] + weights["bias_theta"]
        return CombinerStep(theta=tensor(1 / (1 + np.exp(-x))), mu=tensor(mu.T))

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
        from labelmem.compiled.cells import CompiledRead
        from labelmem.compiled.label import label_step

        assert isinstance(state, LabelState) and isinstance(read, CompiledRead)
        state = _with_slots(state, 1 + out.shape[1])
        mu = np.ascontiguousarray(array(state.mu)[0].T)  # hidden units in rows, as it leaves them
        next_mu, weights = np.empty_like(mu), arrays(self)
        label_step(
            weights["weight_h"],
            weights["weight_flags"],
            weights["weight_scores"],
            weights["weight_mu"],
            weights["bias_input"],
            weights["bias_mu"],
            weights["weight_theta"],
            weights["bias_theta"].reshape(1),
            h,
            array(state.missed)[0],
            mu,
            row(state.r),
            row(state.s),
            logits,
            read.told("label"),
            read.scores_of_cells,
            partition,
            out,
            next_mu,
        )
        return CombinerStep(tensor(out[1]), tensor(next_mu.T))

    def _plain(self, step: CombinerStep, view: View) -> bool:
        """Whether nothing of a step needs a gradient, and kernels are taken."""
        free = not (step.mu.requires_grad or view.s.requires_grad)
        return free and alone(view.r) and compiled(view.r.dtype == torch.float32)

    def _observe_compiled(
        self, state: LabelState, step: CombinerStep, view: View, y: int
    ) -> LabelState:
        """Remember the scores of one stream on a CPU, by a compiled kernel."""
        from labelmem.compiled.label import remember_scores

        r, s = (np.empty(step.mu.shape[1], np.float32) for _ in range(2))
        missed = np.empty(2, np.float32)
        remember_scores(row(view.r), row(view.s), y, r, s, missed)
        return LabelState(step.mu, tensor(r), tensor(s), tensor(missed))

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
        if view.read.compiled and mask is None and state.ids is None and self._plain(step, view):
            return self._observe_compiled(state, step, view, int(y))
        best = (view.best, view.read.best) if isinstance(view.read, LoneRead) else (None, None)
        if recording() and _in_place(state, view) and best[0] is not None and best[1] is not None:
            return _swapped_many(state, step.mu, (best[0], best[1]), y, mask)
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
        if state.spare is not None and recording():
            return _swapped(state, step.mu, r, s, missed, mask)
        old = _with_slots(state, step.mu.shape[1])
        new = replace(old, mu=step.mu, missed=missed.to(step.mu.dtype))
        if new.ids is None:
            pad = r.new_zeros(r.shape[0], 1)  # the background label has no scores
            extra = r.new_zeros(r.shape[0], old.mu.shape[1] - 1 - r.shape[1])
            new = replace(new, r=torch.cat([pad, r, extra], 1), s=torch.cat([pad, s, extra], 1))
        else:
            new = self._activated(new, r, s, mask)
            old = _with_slots(old, new.mu.shape[1])
        return new.where(mask, old)

    def _spread(self, theta: Tensor, ids: Tensor | None, width: int) -> Tensor:
        """From slots (n, A) to labels (n, width)."""
        if ids is None:
            return theta[:, 1 : 1 + width]
        background = theta[:, :1].expand(-1, width + 1)
        column = torch.where(ids >= 0, ids, width)  # slots without a label fall off the end
        return background.scatter(1, column, theta)[:, :width]

    def _activated(
        self, state: LabelState, r: Tensor, s: Tensor, mask: Tensor | None
    ) -> LabelState:
        """Give every label above the threshold a slot of its own, from the background state."""
        assert state.ids is not None
        ids = state.ids
        # A late label's scores are from a time when fewer labels were known.
        width = max(r.shape[1], int(ids.max()) + 1)
        r, s = (nn.functional.pad(x, (0, width - x.shape[1])) for x in (r, s))
        column = torch.where(ids >= 0, ids, width)
        held = torch.zeros(r.shape[0], width + 1, dtype=torch.bool, device=r.device)
        held = held.scatter(1, column, True)[:, :width]
        joins = ((r > self.active_threshold) | (s > self.active_threshold)) & ~held
        if mask is not None:
            joins &= mask[:, None]
        row, label = joins.nonzero(as_tuple=True)
        if len(row):
            rank = joins.cumsum(dim=1)[row, label] - 1
            slot = 1 + (ids >= 0).sum(dim=1)[row] + rank
            state = _with_slots(state, int(slot.max()) + 1)
            assert state.ids is not None
            ids = state.ids.clone()
            ids[row, slot] = label
            # Slots freshly made hold the background state already; a spare one may not.
            mu = state.mu.clone()
            mu[row, slot] = state.mu[row, _BACKGROUND]
            state = replace(state, ids=ids, mu=mu)
        named = ids >= 0
        column = ids.clamp(min=0)
        zero = torch.zeros_like(state.r)
        return replace(
            state,
            r=torch.where(named, r.gather(1, column), zero),
            s=torch.where(named, s.gather(1, column), zero),
        )


def _swapped(
    state: LabelState, mu: Tensor, r: Tensor, s: Tensor, missed: Tensor, mask: Tensor | None
) -> LabelState:
    """A commit in place: the next mu is in the spare room already, and the two change places."""
    seen = torch.ones_like(missed[:, 0], dtype=torch.bool) if mask is None else mask
    mu.copy_(torch.where(seen[:, None, None], mu, state.mu))
    for old, new in ((state.r, r), (state.s, s)):
        part = old[:, 1 : 1 + new.shape[1]]
        part.copy_(torch.where(seen[:, None], new, part))
    missed = torch.where(seen[:, None], missed.to(mu.dtype), state.missed)
    return replace(state, mu=mu, spare=state.mu, missed=missed)


def _in_place(state: LabelState, view: View) -> bool:
    """Whether r and s were put where there was room for them."""
    room = (state.spare_r, state.spare_s)
    return all(
        x is not None and x[:, 1:].data_ptr() == seen.data_ptr()
        for x, seen in zip(room, (view.r, view.s), strict=True)
    )


def _swapped_many(
    state: LabelState, mu: Tensor, best: tuple[Tensor, Tensor], y: Tensor, mask: Tensor | None
) -> LabelState:
    """The same on a GPU, where r and s are in their spare room as well.

    ``best`` are the labels (n,) with the highest r and s.
    """
    from labelmem.kernels.commit import keep_many

    assert state.spare_r is not None and state.spare_s is not None
    seen = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
    new, old = (mu, state.spare_r, state.spare_s), (state.mu, state.r, state.s)
    keep_many(seen, y, best, new, old, state.missed)
    fields = ("mu", "r", "s", "spare", "spare_r", "spare_s")
    return replace(state, **dict(zip(fields, new + old, strict=True)))


def _with_slots(state: LabelState, slots: int) -> LabelState:
    """Append slots that hold the background state and no scores."""
    more = slots - state.mu.shape[1]
    if more <= 0:
        return state
    n = state.mu.shape[0]
    background = state.mu[:, :1].expand(-1, more, -1)
    none = state.r.new_zeros(n, more)
    ids = state.ids
    if ids is not None:
        ids = torch.cat([ids, ids.new_full((n, more), -1)], dim=1)
    return replace(
        state,
        mu=torch.cat([state.mu, background], dim=1),
        r=torch.cat([state.r, none], dim=1),
        s=torch.cat([state.s, none], dim=1),
        ids=ids,
    )
