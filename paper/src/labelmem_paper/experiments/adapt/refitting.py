"""Logistic regression that is fitted again and again, on training examples and stream together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.baselines.base import require
from labelmem.baselines.model_method import ModelMethod, ModelState, ModelStep
from labelmem.baselines.state import wider
from labelmem.errors import UnsupportedError
from labelmem_paper.experiments.adapt.logistic import descend

__all__ = ["RefitOptions", "Refitting"]


@dataclass(frozen=True)
class RefitOptions:
    """How often, how long, and how strongly the weights are held back."""

    every: int = 50
    """Steps of the stream between two fits."""
    iterations: int = 20
    """The most of one fit, which begins where the last one ended."""
    strength: float = 1e-3
    """Of L2, as in :func:`labelmem_paper.experiments.adapt.logistic.fit_logistic`."""

    def __post_init__(self) -> None:
        for name in ("every", "iterations"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")


@dataclass
class RefitState(ModelState):
    """The stream so far and the weights of the last fit; the first dimension is one stream."""

    h: Tensor
    """(1, T, d)."""
    y: Tensor
    """(1, T)."""
    weight: Tensor
    """(1, K, d); labels that came after the last fit have no row yet."""
    bias: Tensor
    """(1, K)."""


class Refitting(ModelMethod[RefitState, RefitOptions]):
    """What an engineer would do by night: train the last layer anew on everything there is.

    It begins with the model's own head. After every ``every`` labels of a stream the weights go on
    from where they are, by L-BFGS on the mean loss of all training examples and of the stream so
    far. A label has probability 0 until the first fit that knows it. One stream at a time.

    Parameters
    ----------
    taught
        Features (N, d) and labels (N,) that the model was trained on.
    """

    name = "logistic"
    Options = RefitOptions

    def __init__(
        self,
        model: nn.Linear,
        taught: tuple[Tensor, Tensor],
        options: RefitOptions | None = None,
        labels: Iterable[Hashable] | None = None,
    ) -> None:
        super().__init__(model, labels=labels, options=options)
        self.taught = taught
        self._start = model.weight, model.bias

    def initial_state(self, streams: int) -> RefitState:
        """The model's own head."""
        if streams != 1:
            raise UnsupportedError(f"{self.name} takes one stream at a time, not {streams}")
        weight, bias = self._start
        bias = weight.new_zeros(len(weight)) if bias is None else bias
        h, y = (part[None, :0] for part in self.taught)
        own = weight[None].clone(), bias[None].clone()
        return RefitState(1, self.backbone.initial_state(1), h, y, *own)

    @torch.no_grad()
    def advance(self, state: RefitState, x: Any, width: int) -> ModelStep:
        """The softmax of the last fit."""
        step = self.see(state, x, width)
        logits = nn.functional.linear(step.h, state.weight[0], state.bias[0])
        return replace(step, probs=wider(torch.softmax(logits, dim=1), width))

    def learn(self, state: RefitState, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """Keep the example; now and then fit."""
        if mask is not None and not bool(mask.all()):
            return
        state.h = torch.cat([state.h, step.h[None]], dim=1)
        state.y = torch.cat([state.y, y[None]], dim=1)
        if state.y.shape[1] % self.options.every == 0:
            self._fit(state)

    @torch.enable_grad()
    def _fit(self, state: RefitState) -> None:
        labels = max(state.weight.shape[1], int(state.y.max()) + 1)
        weight = wider(state.weight, labels)[0].clone().requires_grad_()
        bias = wider(state.bias, labels)[0].clone().requires_grad_()
        taught_h, taught_y = self.taught
        h, y = torch.cat([taught_h, state.h[0]]), torch.cat([taught_y, state.y[0]])
        descend(weight, bias, h, y, self.options.strength, self.options.iterations)
        state.weight, state.bias = weight.detach()[None], bias.detach()[None]
