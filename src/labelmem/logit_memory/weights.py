"""The combiner: weights of the features, learned by the log-loss of the stream itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

__all__ = ["Weights"]

_STEPS, _LENGTHS = 3, (1.0, 0.5, 0.25, 0.1)
"""Newton steps after a label, and the parts of each that are tried."""
_EVEN = 1e-9
"""Nats that do not matter: near the end a full step is taken, whatever rounding says."""


class Weights:
    """Theta, with a Gaussian belief about it that slowly goes back to where it began.

    A label teaches by an implicit step: theta minimises its own log-loss plus the distance to the
    theta before, in the metric of what was learned. Labels may be wrong: with probability ``noise``
    a label is taken to be drawn from all alike, so that one surprise moves little.
    """

    def __init__(self, start: Sequence[float], spread: Sequence[float]) -> None:
        self.start = torch.tensor(start, dtype=torch.float64)
        self.prior = torch.tensor(spread, dtype=torch.float64).pow(-2).diag()
        self.theta, self.held = self.start.clone(), self.prior.clone()

    def learn(
        self, features: Tensor, offset: Tensor, true: int, noise: float, labels: int, forget: float
    ) -> None:
        """One label: features (C, k) and offsets (C,) of the candidates, and which was true."""
        x, offset = features.double(), offset.double()
        held = forget * self.held + (1 - forget) * self.prior
        back = (1 - forget) * self.prior @ (self.start - self.theta)
        centre = self.theta + torch.linalg.solve(held, back)

        def belief(theta: Tensor) -> Tensor:
            return torch.softmax(x @ theta + offset, 0)

        def loss(theta: Tensor) -> float:
            p = (1 - noise) * float(belief(theta)[true]) + noise / labels
            off = theta - centre
            return float(off @ held @ off) / 2 - math.log(p + 1e-300)

        theta, p, best = centre, belief(centre), loss(centre)
        for _ in range(_STEPS):
            right = (1 - noise) * float(p[true])
            share = right / (right + noise / labels + 1e-300)
            mean = p @ x
            curvature = share * ((x * p[:, None]).T @ x - torch.outer(mean, mean))
            slope = share * (x[true] - mean) - held @ (theta - centre)
            step = torch.linalg.solve(held + curvature, slope)
            theta = _shortened(theta, step, loss, best + _EVEN)
            best, p = loss(theta), belief(theta)
        self.theta, self.held = theta, held + curvature

    def tensors(self) -> dict[str, Tensor]:
        """What streams of one form have apart."""
        return {"theta": self.theta, "held": self.held}


def _shortened(theta: Tensor, step: Tensor, loss: Callable[[Tensor], float], most: float) -> Tensor:
    """The longest part of the step whose loss is small enough; where none is, no step."""
    tried = (theta + part * step for part in _LENGTHS)
    return next((there for there in tried if loss(there) <= most), theta)
