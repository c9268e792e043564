"""Eq. 4 for one stream on a CPU: labels close to the background state move along with it.

Most labels have hardly any r and no s, so their states stay close to the background state, and the
GRU cell moves them as its linearisation there does: one small matrix for all of them instead of
three gates for each. A label counts as close when its gates' inputs differ from the background's
by no more than the square root of what the number type can tell from one; what the linearisation
leaves out is of the order of the square of that, so it is lost in rounding. The others take the
cell itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelmem.fast import Array

__all__ = ["Cell", "step_one"]


@dataclass(frozen=True)
class Cell:
    """The GRU cell at one step, with all that the labels share put into ``shared``."""

    from_mu: Array
    """(3 hidden, hidden) weights of the state."""
    bias_mu: Array
    """(3 hidden,)."""
    from_scores: Array
    """(3 hidden, 2) weights of r and s."""
    shared: Array
    """(3 hidden,) what h, the error flags and the bias put in."""

    def __call__(self, mu: Array, scores: Array) -> Array:
        """The next states of labels with states (hidden, A) and r and s (2, A)."""
        k = len(mu)
        state = self.from_mu @ mu + self.bias_mu[:, None]
        seen = self.from_scores @ scores + self.shared[:, None]
        reset, update = _sigmoid(state[: 2 * k] + seen[: 2 * k]).reshape(2, k, -1)
        new = np.tanh(seen[2 * k :] + reset * state[2 * k :])
        moved: Array = new + update * (mu - new)
        return moved

    def tangent(self, mu: Array) -> tuple[Array, Array]:
        """At the state (hidden,) without scores: how the next one moves with it, and with r, s."""
        k = len(mu)
        state = self.from_mu @ mu + self.bias_mu
        reset, update = _sigmoid(state[: 2 * k] + self.shared[: 2 * k]).reshape(2, k)
        new = np.tanh(self.shared[2 * k :] + reset * state[2 * k :])
        slope = (1 - update) * (1 - new * new)
        by_reset = slope * state[2 * k :] * reset * (1 - reset)
        by_update = (mu - new) * update * (1 - update)

        def moved(weights: Array, by_new: Array) -> Array:
            own_reset, own_update, own_new = weights.reshape(3, k, -1)
            change: Array = (
                by_reset[:, None] * own_reset
                + by_update[:, None] * own_update
                + by_new[:, None] * own_new
            )
            return change

        return np.diag(update) + moved(self.from_mu, slope * reset), moved(self.from_scores, slope)

    def reach(self, mu: Array, background: Array, scores: Array) -> Array:
        """(A,) at most how far the inputs of a label's gates are from the background's."""
        apart = mu - background[:, None]
        np.abs(apart, out=apart)
        by_scores = np.abs(self.from_scores).max(axis=0)
        far: Array = apart.max(axis=0) * np.abs(self.from_mu).sum(axis=1).max()
        far += by_scores @ scores
        return far


def step_one(cell: Cell, mu: Array, scores: Array) -> Array:
    """The next states (hidden, A) of the labels with states (hidden, A) and r and s (2, A).

    The first is the background state, whose scores are zero.
    """
    background = mu[:, 0].copy()
    near = np.sqrt(np.finfo(mu.dtype).eps)
    far = np.flatnonzero(cell.reach(mu, background, scores) > near)
    if 2 * len(far) > mu.shape[1]:
        return cell(mu, scores)
    own = cell(background[:, None], scores[:, :1])
    by_mu, by_scores = cell.tangent(background)
    # One product moves all labels: by their states, their scores, and what is the same for all.
    rest = own - by_mu @ background[:, None]
    moved: Array = np.concatenate([by_mu, by_scores, rest], axis=1) @ np.concatenate(
        [mu, scores, np.ones((1, mu.shape[1]), mu.dtype)]
    )
    moved[:, :1] = own
    if len(far):
        moved[:, far] = cell(mu[:, far], scores[:, far])
    return moved


def _sigmoid(x: Array) -> Array:
    half: Array = np.tanh(x / 2)
    half += 1
    half /= 2
    return half
