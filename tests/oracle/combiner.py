"""The combiner of Eq. 4, one label at a time, on Python floats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .memory import Label


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), written so that exp cannot overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    return math.exp(x) / (1.0 + math.exp(x))


def affine(W: Sequence[Sequence[float]], b: Sequence[float], x: Sequence[float], row: int) -> float:
    """One row of W x + b."""
    total = b[row]
    for weight, value in zip(W[row], x, strict=True):
        total += weight * value
    return total


class OracleGRU:
    """A GRU cell; rows of the weights are the gates r, z, n, each of hidden size H, in this order.

    weight_ih is (3H, I), weight_hh is (3H, H), both biases are (3H,).
    """

    def __init__(
        self,
        weight_ih: Sequence[Sequence[float]],
        weight_hh: Sequence[Sequence[float]],
        bias_ih: Sequence[float],
        bias_hh: Sequence[float],
    ) -> None:
        self.weight_ih = weight_ih
        self.weight_hh = weight_hh
        self.bias_ih = bias_ih
        self.bias_hh = bias_hh
        self.hidden_size = len(weight_hh) // 3

    def __call__(self, x: Sequence[float], h: Sequence[float]) -> list[float]:
        """The next state from input x and state h."""
        H = self.hidden_size
        after = []
        for i in range(H):
            r = sigmoid(self._from_input(x, i) + self._from_state(h, i))
            z = sigmoid(self._from_input(x, H + i) + self._from_state(h, H + i))
            n = math.tanh(self._from_input(x, 2 * H + i) + r * self._from_state(h, 2 * H + i))
            after.append((1.0 - z) * n + z * h[i])
        return after

    def _from_input(self, x: Sequence[float], row: int) -> float:
        return affine(self.weight_ih, self.bias_ih, x, row)

    def _from_state(self, h: Sequence[float], row: int) -> float:
        return affine(self.weight_hh, self.bias_hh, h, row)


def missed(scores: Mapping[Label, float], labels: Sequence[Label], y: Label) -> float:
    """1 if the argmax of the scores is not y (ties: the lowest position in labels), else 0.

    Scores without support, those of an empty memory, have missed.
    """
    best = None
    highest = 0.0
    for label in labels:
        if scores.get(label, 0.0) > highest:
            best, highest = label, scores[label]
    if highest == 0.0:
        return 1.0
    return 0.0 if best == y else 1.0


class OracleCombiner:
    """Eq. 4 with one state per label; `theta` looks ahead, `commit` makes the step real."""

    def __init__(self, gru: OracleGRU, w_theta: Sequence[float], b_theta: float) -> None:
        self.gru = gru
        self.w_theta = list(w_theta)
        self.b_theta = b_theta
        self.mu: dict[Label, list[float]] = {}  # of the labels seen by a commit
        self.e_pcn = 0.0  # of the step before, as r and s: all 0 at t = 0
        self.e_mem = 0.0
        self.r: dict[Label, float] = {}
        self.s: dict[Label, float] = {}
        self._history: list[tuple[list[float], float, float]] = []  # h, e_pcn, e_mem of each step

    def background(self) -> list[float]:
        """The state of a label whose r and s were 0 from the start: the whole history, replayed."""
        mu = [0.0] * self.gru.hidden_size
        for h, e_pcn, e_mem in self._history:
            mu = self.gru([*h, e_pcn, e_mem, 0.0, 0.0], mu)
        return mu

    def theta(self, h: Sequence[float], labels: Sequence[Label]) -> dict[Label, float]:
        """theta_ty of the given labels from the committed state; changes nothing."""
        result = {}
        for label in labels:
            total = self.b_theta
            for weight, value in zip(self.w_theta, self._next_mu(h, label), strict=True):
                total += weight * value
            result[label] = sigmoid(total)
        return result

    def commit(
        self,
        h: Sequence[float],
        labels: Sequence[Label],
        y: Label,
        r: Mapping[Label, float],
        s: Mapping[Label, float],
    ) -> None:
        """Make the step of theta(h, labels) real, now that y is known; r and s are of that step."""
        everyone = dict.fromkeys([*self.mu, *labels])
        self.mu = {label: self._next_mu(h, label) for label in everyone}
        self._history.append(([float(x) for x in h], self.e_pcn, self.e_mem))
        self.e_pcn = missed(r, labels, y)
        self.e_mem = missed(s, labels, y)
        self.r = dict(r)
        self.s = dict(s)

    def _next_mu(self, h: Sequence[float], label: Label) -> list[float]:
        """mu_t of one label from mu_(t-1) and the input at t."""
        before = self.mu[label] if label in self.mu else self.background()
        r = self.r.get(label, 0.0)
        s = self.s.get(label, 0.0)
        return self.gru([*h, self.e_pcn, self.e_mem, r, s], before)
