"""MAML among pictures: weights trained to be good after a step on every label of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from labelmem_paper.experiments.images.own_weights import Part, Stepped, known_parts, respond

__all__ = ["Lessons", "adapted_losses", "any_adapted_losses"]

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
    ``first_order`` takes the steps as constants instead. Under autocast, convolutions compute in
    16 bits.
    """
    parts = known_parts(model, lessons.x[:, 0])
    if parts is None or not torch.is_grad_enabled():  # vmap takes some where none are wanted
        return any_adapted_losses(model, lessons, lr, first_order)
    device = lessons.x.device.type
    sequences = _Sequences(parts, model, len(lessons.y), torch.is_autocast_enabled(device))
    steps = lessons.y.shape[1]
    total = lessons.x.new_zeros(())
    # Autocast itself would mix types where gradients of gradients are added.
    with torch.autocast(device, enabled=False):
        for t in range(steps):
            losses = sequences.losses(lessons.x[:, t], lessons.y[:, t])
            total = total + (losses * lessons.counts[:, t]).sum()
            if t < steps - 1:
                sequences.step(losses, lr, first_order)
    return total / lessons.counts.sum().clamp(min=1)


class _Sequences:
    """The weights of sequences that move; those of linear layers as the steps they have taken."""

    def __init__(self, parts: Sequence[Part], model: nn.Module, count: int, half: bool) -> None:
        self.parts, self.half = parts, half
        start = dict(model.named_parameters())
        self.moved: Weights = {name: p.expand(count, *p.shape) for name, p in start.items()}
        for weight in self.moved.values():
            if not weight.requires_grad:  # it is not trained, but it moves
                weight.requires_grad_()
        self.stepped = {
            name: Stepped.none(start[f"{name}.weight"], count)
            for name, part in parts
            if isinstance(part, nn.Linear) and part.bias is not None
        }
        for name in self.stepped:
            del self.moved[f"{name}.weight"]
        self._inputs: Weights = {}

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """-log P(y) (n,) under the weights of now."""
        stepped = {f"{name}.weight": weight for name, weight in self.stepped.items()}
        logits = respond(self.parts, {**self.moved, **stepped}, x, self._inputs, self.half)
        return nn.functional.cross_entropy(logits, y, reduction="none")

    def step(self, losses: Tensor, lr: float, first_order: bool) -> None:
        """Step down the slopes of the losses that were found last."""
        total = losses.sum()
        given = list(self.moved.values())
        slopes = torch.autograd.grad(total, given, retain_graph=True, create_graph=not first_order)
        moves = {name: lr * slope for name, slope in zip(self.moved, slopes, strict=True)}
        self.moved = {name: weight - moves[name] for name, weight in self.moved.items()}
        for name, weight in self.stepped.items():
            # A linear layer's slope is that of its outputs, which its bias has too, times inputs.
            x = self._inputs[name]
            self.stepped[name] = weight.after(
                moves[f"{name}.bias"], x.detach() if first_order else x
            )


def any_adapted_losses(
    model: nn.Module, lessons: Lessons, lr: float, first_order: bool = False
) -> Tensor:
    """What :func:`adapted_losses` gives, of any network that works on one sequence."""
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
