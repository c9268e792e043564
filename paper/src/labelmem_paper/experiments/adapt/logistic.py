"""Multinomial logistic regression on features, its strength chosen on a part it does not see."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["best_strength", "descend", "fit_logistic"]

STRENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Of L2, strongest first: each fit begins where the one before ended."""
HELD_OUT = 5
"""One in so many examples chooses the strength."""
ITERATIONS = 300
"""The most of one fit."""


def fit_logistic(h: Tensor, y: Tensor, labels: int, seed: int) -> tuple[Tensor, Tensor]:
    """Weight (labels, d) and bias (labels,) from features h (n, d) and labels y (n,).

    Examples
    --------
    >>> h = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]).repeat(10, 1)
    >>> weight, bias = fit_logistic(h, (h[:, 0] > 0).long(), labels=2, seed=0)
    >>> (h @ weight.T + bias).argmax(1)[:4]
    tensor([0, 0, 1, 1])
    """
    weight = h.new_zeros(labels, h.shape[1], requires_grad=True)
    bias = h.new_zeros(labels, requires_grad=True)
    descend(weight, bias, h, y, _chosen(weight, bias, h, y, seed, ITERATIONS))
    return weight.detach(), bias.detach()


def best_strength(
    h: Tensor, y: Tensor, labels: int, seed: int, iterations: int = ITERATIONS
) -> float:
    """The strength that :func:`fit_logistic` chooses; fewer iterations make it cheaper.

    Examples
    --------
    >>> h = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]).repeat(10, 1)
    >>> best_strength(h, (h[:, 0] > 0).long(), labels=2, seed=0) < 1e-3
    True
    """
    weight = h.new_zeros(labels, h.shape[1], requires_grad=True)
    bias = h.new_zeros(labels, requires_grad=True)
    return _chosen(weight, bias, h, y, seed, iterations)


def _chosen(
    weight: Tensor, bias: Tensor, h: Tensor, y: Tensor, seed: int, iterations: int
) -> float:
    """The best strength; weight and bias are left at the weakest one's fit to a part."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    held, rest = order[: len(y) // HELD_OUT], order[len(y) // HELD_OUT :]
    losses = []
    for strength in STRENGTHS:
        descend(weight, bias, h[rest], y[rest], strength, iterations)
        losses.append(float(_loss(weight, bias, h[held], y[held]).detach()))
    return STRENGTHS[losses.index(min(losses))]


def _loss(weight: Tensor, bias: Tensor, h: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(nn.functional.linear(h, weight, bias), y)


def descend(
    weight: Tensor,
    bias: Tensor,
    h: Tensor,
    y: Tensor,
    strength: float,
    iterations: int = ITERATIONS,
) -> None:
    """Go down from where weight and bias are, in place."""
    optimiser: torch.optim.Optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimiser.zero_grad()
        loss = _loss(weight, bias, h, y) + strength / 2 * weight.square().sum()
        torch.autograd.backward(loss)
        return float(loss.detach())

    optimiser.step(closure)
