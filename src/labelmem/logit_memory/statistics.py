"""Means of the labels and the covariance within them, as scores of linear discriminant analysis."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["LabelStatistics"]

_FIRST, _GROWTH = 8, 1.5
"""The covariance is inverted at each of the first steps, then each time there are so many more."""
_KAPPA, _STEEPEST, _KEPT = 0.15, 0.5, 0.998
"""Where kappa starts, the largest step of its logarithm, and what its curvature keeps."""
_ROUNDING = 1e-6
"""Keys are taken to differ by at least so much of their mean square."""
_DOUBTED, _RELIED = 4.0, 20.0
"""The covariance counts as ``(n + 4) / (n + 20)`` after n examples of labels that came before."""
_FAMILIAR, _FELT = 20, 100
"""The most examples that training counts as: of one label, and for the mean of all."""


class LabelStatistics:
    """Sums of the keys of each label, and what their scatter says about distances.

    The score of label y at x is ``kappa (u' A (x - m) - u' A u / 2)``: m is the mean of all keys, A
    the inverse of the covariance within labels, u the mean of y relative to m, pulled to 0 while y
    has few examples. Kappa is one number for all labels, learned by the log-loss of the scores.
    """

    def __init__(self, dim: int, pseudo_count: float, like: Tensor) -> None:
        self.dim, self.pseudo_count = dim, pseudo_count
        self.sums = like.new_zeros(0, dim)
        """(m, d) of the slots."""
        self.counts = like.new_zeros(0)
        """(m,) examples of each label."""
        self.squares = like.new_zeros(0)
        """(m,) ``u' A u`` of the plain means."""
        self.mean = like.new_zeros(dim)
        """(d,) of all keys."""
        self.origin = like.new_zeros(dim)
        """(d,) the mean when A was last made; scores are relative to it."""
        self.scatter = like.new_zeros(dim, dim)
        """(d, d) sum of squares within labels."""
        self.root = like.new_zeros(dim, dim)
        """(d, d) R with A = R R': times R, the scatter within labels is the same all around."""
        # keys seen, those in the scatter, sum of squares about the mean, kappa and its curvature
        self.numbers = torch.tensor([0.0, 0.0, 0.0, _KAPPA, 1.0, 1.0], dtype=torch.float64)

    @property
    def seen(self) -> int:
        """How many keys were added."""
        return int(self.numbers[0])

    @property
    def variance(self) -> float:
        """Mean square of the distance to the mean of all keys, rounding counted in."""
        least = _ROUNDING * float(self.mean.square().sum())
        return max(float(self.numbers[2]) / max(self.seen, 1), least, 1e-30)

    def open(self) -> None:
        """One more slot, for a label without examples."""
        self.sums = torch.cat([self.sums, self.sums.new_zeros(1, self.sums.shape[1])])
        self.counts = torch.cat([self.counts, self.counts.new_zeros(1)])
        self.squares = torch.cat([self.squares, self.squares.new_zeros(1)])

    @property
    def trust(self) -> float:
        """How far the covariance can be relied on, by the examples that it was made of."""
        held = float(self.numbers[1])
        return (held + _DOUBTED) / (held + _RELIED)

    def placed(self, x: Tensor) -> Tensor:
        """(J, d) keys x (J, d) where distances count in units of the scatter within labels."""
        return (x - self.origin) @ self.root

    def off_and_across(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(J, d) keys relative to the origin, and the same times A."""
        return x - self.origin, self.placed(x) @ self.root.T

    def scores(self, x: Tensor, without: Tensor | None = None) -> Tensor:
        """(J, m) scores at keys x (J, d); 0 for labels without examples.

        Parameters
        ----------
        without
            (J,) the slot of the label that x itself is an example of: it is left out then.
        """
        off, across = self.off_and_across(x)
        count = self.counts.expand(len(x), -1)
        along, square = across @ self._centred().T, self.squares.expand(len(x), -1)
        if without is not None:
            at, own = without[:, None], (across * off).sum(1, keepdim=True)
            c, v, s = (values.gather(1, at) for values in (count, along, square))
            left = (c - 1).clamp(min=0)
            some = (left > 0.5).to(x.dtype)
            rest = left.clamp(min=1)
            square = square.scatter(1, at, some * (c * c * s - 2 * c * v + own) / rest.square())
            along = along.scatter(1, at, some * (c * v - own) / rest)
            count = count.scatter(1, at, left)
        pull = count / (count + self.pseudo_count)
        return float(self.numbers[3]) * (pull * along - pull * pull * square / 2)

    def calibrate(self, scores: Tensor, met: Tensor, slot: int) -> None:
        """A Newton step of log kappa, given the scores (m,) and the true label."""
        s = scores.double()
        p = torch.softmax(s.masked_fill(~met, -torch.inf), 0)
        mean = p @ s
        gradient, curvature = float(s[slot] - mean), float(p @ s.square() - mean.square())
        held = _KEPT * float(self.numbers[4]) + curvature + 1e-3
        step = min(max(gradient / held, -_STEEPEST), _STEEPEST)
        self.numbers[4] = held
        self.numbers[3] *= math.exp(step)

    def add(self, x: Tensor, slot: int) -> bool:
        """One more example x (d,) of a label; whether all places have moved."""
        c = float(self.counts[slot])
        if c > 0:
            off = x - self.sums[slot] / c
            self.scatter.addr_(off, off, alpha=c / (c + 1))
            self.numbers[1] += 1
        self.sums[slot] += x
        self.counts[slot] += 1
        self.numbers[0] += 1
        before = x - self.mean
        self.mean = self.mean + before / self.seen
        self.numbers[2] += float(before @ (x - self.mean))
        if self.seen <= _FIRST or self.seen >= float(self.numbers[5]):
            self.renew()
            return True
        mean = self.sums[slot] / self.counts[slot]
        self.squares[slot] = self.placed(mean).square().sum()
        return False

    def renew(self) -> None:
        """Invert the covariance, and note when that is due again."""
        self.numbers[5] = int(_GROWTH * max(self.seen, _FIRST)) + 1
        self.refresh()

    def refresh(self) -> None:
        """Invert the covariance, shrunk as the oracle approximation says (OAS), and all squares."""
        self.origin = self.mean
        d = len(self.origin)
        eye = torch.eye(d, dtype=self.scatter.dtype, device=self.scatter.device)
        held = float(self.numbers[1])
        covariance = self.scatter / max(held, 1.0)
        trace = float(covariance.trace())
        if held < 1 or trace <= 0:
            self.root = eye * math.sqrt(d / self.variance)
        else:
            square = float(covariance.square().sum())
            spread = max(square - trace * trace / d, 1e-12 * square)
            off = (1 - 2 / d) * square + trace * trace
            share = min(1.0, off / max((held + 1 - 2 / d) * spread, 1e-300))  # 0 / 0 where d is 1
            ridge = (share + 1e-6) * trace / d
            lower = torch.linalg.cholesky((1 - share) * covariance + ridge * eye)
            self.root = torch.linalg.solve_triangular(lower, eye, upper=False).T
        self.squares = (self._centred() @ self.root).square().sum(1)

    def _centred(self) -> Tensor:
        """(m, d) means relative to the origin; 0 for labels without examples."""
        means = self.sums / self.counts.clamp(min=1)[:, None]
        return (means - self.origin) * (self.counts > 0)[:, None]

    def prime(self, x: Tensor, slot: Tensor) -> None:
        """Begin with examples x (N, d) from training, once there are slots for their labels."""
        count = slot.bincount(minlength=len(self.counts)).to(x.dtype)
        mean = torch.zeros_like(self.sums).index_add(0, slot, x) / count.clamp(min=1)[:, None]
        off = x - mean[slot]
        self.scatter = off.T @ off
        self.numbers[1] = max(len(x) - int((count > 0).sum()), 0)
        self.counts = count.clamp(max=_FAMILIAR)
        self.sums = mean * self.counts[:, None]
        self.mean = x.mean(0)
        self.numbers[0] = felt = min(len(x), _FELT)
        self.numbers[2] = float((x - self.mean).square().sum()) * felt / len(x)
        self.numbers[5] = felt
        self.refresh()

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
