"""The combiner: a small recurrent network that learns how far to trust the memory (Eq. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError, ModelError

__all__ = ["Combiner", "CombinerState", "CombinerStep"]

_BACKGROUND = 0  # the slot of the state that all labels without a slot of their own share


@dataclass(frozen=True)
class CombinerState:
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

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved."""
        saved = {"mu": self.mu, "r": self.r, "s": self.s, "missed": self.missed}
        return saved if self.ids is None else saved | {"ids": self.ids}

    def detach(self) -> CombinerState:
        """The same state, cut off from the graph: the boundary of truncated back-propagation."""
        cut = {name: tensor.detach() for name, tensor in self.tensors().items()}
        return CombinerState(**cut)


@dataclass(frozen=True)
class CombinerStep:
    """A step not yet committed."""

    theta: Tensor
    """(n, W) the memory's weight for every label."""
    mu: Tensor
    """(n, A, hidden) the states that :meth:`Combiner.commit` would make current."""


class Combiner(nn.Module):
    """One GRU cell shared by all labels, with one state per label and stream.

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
    >>> combiner = Combiner(hidden=8, theta=0.25).build(dim=4)
    >>> state = combiner.initial_state(streams=1, width=3)
    >>> combiner(state, torch.zeros(1, 4), width=3).theta
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
        super().__init__()
        if kind != "label":
            raise ConfigError(f"kind is {kind!r}; the known kind is 'label'")
        if hidden < 1:
            raise ConfigError(f"hidden is {hidden}; it must be at least 1")
        if not 0 < theta < 1:
            raise ConfigError(f"theta is {theta}; a combiner starts from a value in (0, 1)")
        if not 0 <= active_threshold < 1:
            raise ConfigError(f"active_threshold is {active_threshold}; it must lie in [0, 1)")
        self.kind, self.hidden, self.seed = kind, hidden, seed
        self.active_threshold = active_threshold
        self.start = theta
        self.dim: int | None = None

    def build(
        self, dim: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Combiner:
        """Create the weights for inputs h of length ``dim``; the adapter does this by itself."""
        if self.dim is not None:
            if self.dim != dim:
                raise ModelError(
                    f"this combiner was built for h of length {self.dim}, the model's h has {dim}; "
                    "make a new Combiner for this model"
                )
            self.to(device=device, dtype=dtype)
            return self
        self.dim = dim
        generator = torch.Generator().manual_seed(self.seed)
        bound = 1 / math.sqrt(self.hidden)
        inputs = {"weight_h": dim, "weight_flags": 2, "weight_scores": 2, "weight_mu": self.hidden}
        for name, columns in inputs.items():
            uniform = torch.rand(3 * self.hidden, columns, generator=generator)
            weight = (2 * uniform - 1) * bound
            self.register_parameter(name, nn.Parameter(weight))
        for name in ("bias_input", "bias_mu"):
            self.register_parameter(name, nn.Parameter(torch.zeros(3 * self.hidden)))
        self.weight_theta = nn.Parameter(torch.zeros(self.hidden))
        self.bias_theta = nn.Parameter(torch.tensor(_logit(self.start)))
        self.to(device=device, dtype=dtype)
        return self

    def form(self) -> dict[str, Any]:
        """What states and weights of this combiner depend on, for saved files."""
        return {
            "kind": self.kind,
            "hidden": self.hidden,
            "active_threshold": self.active_threshold,
        }

    def restart(self, theta: float) -> None:
        """Make LMN-fixed with this ``theta`` the point from which training starts."""
        if not 0 < theta < 1:
            raise ConfigError(f"theta is {theta}; a combiner starts from a value in (0, 1)")
        self.start = theta
        if self.dim is not None:
            with torch.no_grad():
                self.weight_theta.zero_()
                self.bias_theta.fill_(_logit(theta))

    def initial_state(self, streams: int, width: int) -> CombinerState:
        """State at t = 0: nothing predicted yet, so scores and flags are zero."""
        slots = 1 if self.active_threshold else 1 + width
        zeros = self.weight_theta.new_zeros
        ids = torch.full((streams, 1), -1, device=self.weight_theta.device)
        return CombinerState(
            mu=zeros(streams, slots, self.hidden),
            r=zeros(streams, slots),
            s=zeros(streams, slots),
            missed=zeros(streams, 2),
            ids=ids if self.active_threshold else None,
        )

    def forward(self, state: CombinerState, h: Tensor, width: int) -> CombinerStep:
        """Eq. 4 for the first ``width`` labels, given h (n, d). Pure."""
        if state.ids is None:  # labels that joined late start from the background state
            state = _with_slots(state, 1 + width)
        # The labels share this part of the input: one product per step, not one per label.
        shared = h @ self.weight_h.T + state.missed @ self.weight_flags.T + self.bias_input
        own = torch.stack([state.r, state.s], dim=-1) @ self.weight_scores.T
        mu = gru(shared[:, None] + own, state.mu @ self.weight_mu.T + self.bias_mu, state.mu)
        theta = torch.sigmoid(mu @ self.weight_theta + self.bias_theta)
        return CombinerStep(theta=self._spread(theta, state.ids, width), mu=mu)

    def commit(
        self,
        state: CombinerState,
        step: CombinerStep,
        r: Tensor,
        s: Tensor,
        missed: Tensor,
        mask: Tensor | None = None,
    ) -> CombinerState:
        """Make ``step`` current for the masked streams and remember its scores for the next one.

        Parameters
        ----------
        r, s
            (n, W) scores of model and memory at this step.
        missed
            (n, 2) whether their own best labels missed the truth.
        """
        old = _with_slots(state, step.mu.shape[1])
        new = replace(old, mu=step.mu, missed=missed.to(step.mu.dtype))
        if new.ids is None:
            pad = r.new_zeros(r.shape[0], 1)  # the background label has no scores
            extra = r.new_zeros(r.shape[0], old.mu.shape[1] - 1 - r.shape[1])
            new = replace(new, r=torch.cat([pad, r, extra], 1), s=torch.cat([pad, s, extra], 1))
        else:
            new = self._activated(new, r, s, mask)
            old = _with_slots(old, new.mu.shape[1])
        if mask is None:
            return new
        return CombinerState(
            **{
                name: torch.where(mask.view(-1, *[1] * (b.ndim - 1)), b, a)
                for (name, b), a in zip(new.tensors().items(), old.tensors().values(), strict=True)
            }
        )

    def _spread(self, theta: Tensor, ids: Tensor | None, width: int) -> Tensor:
        """From slots (n, A) to labels (n, width)."""
        if ids is None:
            return theta[:, 1 : 1 + width]
        background = theta[:, :1].expand(-1, width + 1)
        column = torch.where(ids >= 0, ids, width)  # slots without a label fall off the end
        return background.scatter(1, column, theta)[:, :width]

    def _activated(
        self, state: CombinerState, r: Tensor, s: Tensor, mask: Tensor | None
    ) -> CombinerState:
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


def gru(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    """One GRU update from the two projections (…, 3 hidden) and the state (…, hidden)."""
    reset_i, update_i, new_i = from_input.chunk(3, dim=-1)
    reset_s, update_s, new_s = from_state.chunk(3, dim=-1)
    update = torch.sigmoid(update_i + update_s)
    new = torch.tanh(new_i + torch.sigmoid(reset_i + reset_s) * new_s)
    return new + update * (state - new)


def _logit(p: float) -> float:
    return math.log(p / (1 - p))


def _with_slots(state: CombinerState, slots: int) -> CombinerState:
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
