"""Multinomial logistic regression on features, its strength chosen on a part it does not see."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["fit_logistic"]

STRENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Of L2, strongest first: each fit begins where the one before ended."""
HELD_OUT = 5
"""One in so many examples chooses the strength."""


def fit_logistic(h: Tensor, y: Tensor, labels: int, seed: int) -> tuple[Tensor, Tensor]:
    """Weight (labels, d) and bias (labels,) from features h (n, d) and labels y (n,).

    Examples
    --------
    >>> h = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]).repeat(10, 1)
    >>> weight, bias = fit_logistic(h, (h[:, 0] > 0).long(), labels=2, seed=0)
    >>> (h @ weight.T + bias).argmax(1)[:4]
    tensor([0, 0, 1, 1])
    """
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    held, rest = order[: len(y) // HELD_OUT], order[len(y) // HELD_OUT :]
    weight = h.new_zeros(labels, h.shape[1], requires_grad=True)
    bias = h.new_zeros(labels, requires_grad=True)
    losses = []
    for strength in STRENGTHS:
        _fit(weight, bias, h[rest], y[rest], strength)
        losses.append(float(_loss(weight, bias, h[held], y[held]).detach()))
    _fit(weight, bias, h, y, STRENGTHS[losses.index(min(losses))])
    return weight.detach(), bias.detach()


def _loss(weight: Tensor, bias: Tensor, h: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(nn.functional.linear(h, weight, bias), y)


def _fit(weight: Tensor, bias: Tensor, h: Tensor, y: Tensor, strength: float) -> None:
    """Go down from where weight and bias are, in place."""
    optimiser: torch.optim.Optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=300, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimiser.zero_grad()
        loss = _loss(weight, bias, h, y) + strength / 2 * weight.square().sum()
        torch.autograd.backward(loss)
        return float(loss.detach())

    optimiser.step(closure)
