"""MAML among pictures: weights trained to be good after a step on every label of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

__all__ = ["Lessons", "adapted_losses"]

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Lessons:
    """Sequences to learn adapting from, ``n`` of T steps."""

    x: Tensor
    """(n, T, …) inputs."""
    y: Tensor
    """(n, T) labels."""
    counts: Tensor
    """(n, T) which predictions count."""


def adapted_losses(
    model: nn.Module, lessons: Lessons, lr: float, first_order: bool = False
) -> Tensor:
    """Mean -log P(y) of the predictions that count, every weight stepping after every label.

    The gradient goes through the steps, to the weights of ``model`` that all sequences start from;
    ``first_order`` takes the steps as constants instead.
    """
    n, steps = lessons.y.shape
    start = dict(model.named_parameters())
    weights = {name: p.expand(n, *p.shape) for name, p in start.items()}
    slope = vmap(grad(partial(_loss, model)))
    predict: Callable[..., Tensor] = vmap(partial(_loss, model))
    total = lessons.x.new_zeros(())
    for t in range(steps):
        given = lessons.x[:, t], lessons.y[:, t]
        total = total + (predict(weights, *given) * lessons.counts[:, t]).sum()
        moves = slope(weights, *given)
        weights = {
            name: weight - lr * (moves[name].detach() if first_order else moves[name])
            for name, weight in weights.items()
        }
    return total / lessons.counts.sum().clamp(min=1)


def _loss(model: nn.Module, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
    """-log P(y) of one input."""
    logits = functional_call(model, weights, (x[None],))[0]
    return -torch.log_softmax(logits, dim=0).gather(0, y[None])[0]
