"""Stochastic gradient descent on the last layer: what most people try first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from labelmem.baselines.base import masked_softmax, refuse_infinite, require
from labelmem.baselines.model_method import ModelMethod, ModelState, ModelStep
from labelmem.baselines.state import wider
from labelmem.online import Step
from labelmem.trees import chosen

__all__ = ["SGDHead", "SGDHeadOptions", "coordinates"]


@dataclass(frozen=True)
class SGDHeadOptions:
    """How to step, and where a new label starts."""

    lr: float = 0.1
    """Learning rate."""
    init: Literal["zero", "imprint"] = "zero"
    """The row of a new label before its first step: zero, or its first h scaled to the mean length
    of the model's own rows."""

    def __post_init__(self) -> None:
        good = self.lr >= 0 and math.isfinite(self.lr)
        require(good, "lr", self.lr, "must be a number from 0")
        require(self.init in ("zero", "imprint"), "init", self.init, "must be 'zero' or 'imprint'")


@dataclass
class SGDHeadState(ModelState):
    """The change of each stream's last layer: of the weight ``coef^T basis``, and of the bias."""

    basis: Tensor
    """(n, k, d) orthonormal rows that span the h's learned from; zero rows are free."""
    coef: Tensor
    """(n, k, W)."""
    bias: Tensor
    """(n, W)."""
    own: Tensor
    """(n,) how many labels of its own a stream has met."""


@dataclass(frozen=True)
class SGDHeadStep(ModelStep):
    """A step with the adapted logits, -inf for labels that a stream does not have."""

    scores: Tensor = field(default_factory=lambda: torch.empty(0))


class SGDHead(ModelMethod[SGDHeadState, SGDHeadOptions]):
    """One step of gradient descent on -log P(y) in weight and bias of the last layer, per label.

    Every stream has a last layer of its own. The gradient is known in closed form,
    ``(P - onehot(y)) h^T``, so no autograd is needed and all streams step at once. A new label gets
    a new row first, then takes part in the step.

    Notes
    -----
    The change of a stream's weight, (L, d), is a sum of products of gradients with the h's it has
    seen, so its rows lie in the span of those h's. It is kept as coefficients (k, L) over an
    orthonormal basis (k, d) of that span, which grows by Gram-Schmidt: k is at most the number of
    labels observed and at most d. That is the same step exactly, at the cost of the cheaper of the
    two obvious forms: a list of all past gradients (short streams) and a dense matrix (long ones).

    Examples
    --------
    >>> stream = SGDHead(torch.nn.Linear(2, 2), options=SGDHeadOptions(lr=1.0)).stream()
    >>> for _ in range(5):
    ...     p = stream.predict([1.0, 1.0])
    ...     stream.observe("new")
    >>> stream.predict([1.0, 1.0]).label
    'new'

    References
    ----------
    Bottou (1998), Online learning and stochastic approximations; ``init="imprint"``: Qi, Brown and
    Lowe (2018), Low-shot learning with imprinted weights.
    """

    name = "sgd-head"
    Options = SGDHeadOptions

    def initial_state(self, streams: int) -> SGDHeadState:
        """The model's own last layer."""
        zeros = self._head.weight.new_zeros
        return SGDHeadState(
            streams,
            self.backbone.initial_state(streams),
            basis=zeros(streams, 0, self._head.in_features),
            coef=zeros(streams, 0, len(self.known)),
            bias=zeros(streams, len(self.known)),
            own=torch.zeros(streams, dtype=torch.int64, device=self.device),
        )

    @torch.no_grad()
    def advance(self, state: SGDHeadState, x: Any, width: int) -> SGDHeadStep:
        """Softmax of the model's logits and the stream's change of them."""
        return self._adapted(state, self.see(state, x, width), width)

    def rebase(self, state: SGDHeadState, step: Step, width: int) -> SGDHeadStep:
        """Late label: the step is taken at the weights of now, with the h of then."""
        moved = super().rebase(state, step, width)
        assert isinstance(moved, ModelStep)
        return self._adapted(state, moved, width)

    def _adapted(self, state: SGDHeadState, step: ModelStep, width: int) -> SGDHeadStep:
        assert step.logits is not None
        change = torch.einsum("nkd,nd->nk", state.basis, step.h)
        change = torch.einsum("nk,nkw->nw", change, state.coef) + state.bias
        scores = wider(step.logits, width) + wider(change, width)[:, :width]
        refuse_infinite(scores)
        has = self.has_label(state.own, width)
        probs, scores = masked_softmax(scores, has), scores.masked_fill(~has, -torch.inf)
        return SGDHeadStep(**{**vars(step), "probs": probs, "scores": scores})

    def learn(self, state: SGDHeadState, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """Give a new label its row, then take the step."""
        assert isinstance(step, SGDHeadStep)
        own = chosen(mask, torch.maximum(state.own, y + 1 - len(self.known)), state.own)
        width = len(self.known) + int(own.max())
        joins = self.has_label(own, width) & ~self.has_label(state.own, width)
        scores = wider(step.scores, width, -torch.inf).masked_fill(joins, 0.0)
        basis, a = coordinates(state.basis, step.h, mask)
        coef = wider(wider(state.coef, width, dim=2), basis.shape[1])
        if self.options.init == "imprint":
            self._imprint(coef, scores, joins, a, step.h)
        gradient = masked_softmax(scores, self.has_label(own, width))
        gradient = gradient - torch.nn.functional.one_hot(y.clamp(max=width - 1), width)
        gradient = chosen(mask, gradient, torch.zeros_like(gradient))
        state.basis, state.own = basis, own
        state.coef = coef.baddbmm_(a[:, :, None], gradient[:, None], alpha=-self.options.lr)
        state.bias = wider(state.bias, width)
        if self._head.bias is not None:
            state.bias = state.bias - self.options.lr * gradient

    def _imprint(self, coef: Tensor, scores: Tensor, joins: Tensor, a: Tensor, h: Tensor) -> None:
        """Start the rows of the labels that join at h, scaled; its score is then known too."""
        length = h.norm(dim=1).clamp(min=torch.finfo(h.dtype).tiny)
        scale = self._head.weight.norm(dim=1).mean()
        row, column = joins.nonzero(as_tuple=True)
        coef[row, :, column] = a[row] * (scale / length[row])[:, None]
        scores[row, column] = scale * length[row]

    @property
    def _head(self) -> torch.nn.Linear:
        assert self.backbone.head is not None
        return self.backbone.head


def coordinates(basis: Tensor, h: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Coordinates (n, k') of h (n, d) in each stream's basis (n, k, d), extended where h leaves it.

    Whatever the rounding, coordinates times basis give h back; only how many rows are needed rests
    on them being orthogonal. In streams that are masked out the basis stays as it is.

    Examples
    --------
    >>> basis, a = coordinates(torch.zeros(1, 0, 2), torch.tensor([[0.0, 2.0]]))
    >>> coordinates(basis, torch.tensor([[3.0, 4.0]]))[1]
    tensor([[4., 3.]])
    """
    a = torch.einsum("nkd,nd->nk", basis, h)
    rest = h - torch.einsum("nkd,nk->nd", basis, a)
    again = torch.einsum("nkd,nd->nk", basis, rest)  # twice is enough for orthogonality
    a, rest = a + again, rest - torch.einsum("nkd,nk->nd", basis, again)
    length = rest.norm(dim=1)
    used = (basis.square().sum(dim=2) > 0).sum(dim=1)
    tiny = 16 * torch.finfo(h.dtype).eps
    leaves = (length > tiny * h.norm(dim=1)) & (used < h.shape[1])
    if mask is not None:
        leaves &= mask
    # The one question to the device: how many rows are needed.
    needed = int(torch.where(leaves, used + 1, 0).amax())
    if needed > basis.shape[1]:  # some spare rows, so that not every label copies everything
        size = min(h.shape[1], max(needed, basis.shape[1] * 9 // 8))
        basis, a = wider(basis, size), wider(a, size)
    if needed:
        slot = torch.arange(basis.shape[1], device=h.device) == used[:, None]
        slot &= leaves[:, None]
        unit = rest / length.clamp(min=torch.finfo(h.dtype).tiny)[:, None]
        basis = torch.where(slot[..., None], unit[:, None], basis)
        a = torch.where(slot, length[:, None], a)
    return basis, a
