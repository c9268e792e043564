"""Model-agnostic meta-learning: weights trained to be good after a step on every label."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.baselines.base import require
from labelmem.online import Step
from labelmem.trees import chosen
from labelmem_paper.methods.fast_lstm import FastLSTM, FastState, Trail, fold_
from labelmem_paper.methods.sequence_method import (
    SequenceMethod,
    SequenceOptions,
    SequenceState,
    SequenceStep,
)
from labelmem_paper.methods.window_passes import UNSCORED

__all__ = ["MAML", "MAMLOptions"]


@dataclass(frozen=True)
class MAMLOptions(SequenceOptions):
    """How the weights step, and how they are trained for it."""

    lr: float = 0.1
    """Learning rate of the step after every label."""
    first_order: bool = False
    """Whether training takes the steps as constants instead of differentiating through them."""
    learn_rates: bool = False
    """Whether each weight tensor learns its own factor of ``lr`` in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        good = self.lr >= 0 and math.isfinite(self.lr)
        require(good, "lr", self.lr, "must be a number from 0")
        require(self.dropout == 0, "dropout", self.dropout, "has no place here: it must be 0")
        require(not self.tied, "tied", self.tied, "has no place here: it must be False")


class MAML(SequenceMethod[MAMLOptions]):
    """All weights of a stream take one step of gradient descent on -log P(y) after every label.

    The shared weights are trained for exactly that, on windows of the training streams (``window``
    of :meth:`fit`, 8 by default): the steps in a window are unrolled, the loss is the mean of
    -log P over its predictions, and its gradient goes through the steps, second order. At the
    border of two windows a stream keeps how far its weights have moved, as a constant; so the last
    label of a long stream is trained under the weights it will be predicted with. A step's own
    gradient goes back one step in time, online and in training alike.

    Each stream holds 2 L dim numbers for the label vectors and the output layer. A label costs a
    few passes over the output layer's part, and training adds n L numbers for each pair of the
    window's steps, not n L dim for each step.

    Examples
    --------
    >>> stream = MAML(labels=["cat", "dog"], options=MAMLOptions(dim=8, lr=0.5)).stream()
    >>> for _ in range(5):
    ...     p = stream.predict(None)
    ...     stream.observe("dog")
    >>> stream.predict(None).label
    'dog'

    References
    ----------
    Finn, Abbeel and Levine (2017), Model-Agnostic Meta-Learning for Fast Adaptation of Deep
    Networks; Li et al. (2017), Meta-SGD, for ``learn_rates``.
    """

    name = "maml"
    Options = MAMLOptions
    online_options = ("lr", "first_order")
    training = {"epochs": 3, "window": 8, "batch": 16}
    network: FastLSTM

    def made_network(self) -> FastLSTM:
        """An LSTM with room for each stream's own weights."""
        return FastLSTM(len(self.known), self.options.dim, self.options.learn_rates)

    def begin(self, streams: int) -> FastState:
        """The shared weights."""
        return self.network.initial_state(streams)

    def respond(self, tokens: Tensor, state: FastState) -> tuple[Tensor, FastState]:
        """What each stream's own weights say."""
        logits, after = self.network(tokens, state)
        return logits, after

    def window(self, tokens: Tensor, y: Tensor, state: FastState) -> tuple[Tensor, FastState]:
        """Unroll the steps of a window; they are folded into a copy of the state at its end."""
        trail, total = Trail(), state["h"].new_zeros(())
        o = self.options
        for t in range(tokens.shape[1]):
            losses, state = self.network.step(
                tokens[:, t], y[:, t], state, trail, o.lr, o.first_order
            )
            total = total + losses.sum()
        after = {**state, "rows": state["rows"].clone(), "head": state["head"].clone()}
        fold_(after, trail)
        return total, after

    @torch.no_grad()
    def commit(self, state: SequenceState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Take the step; the two large parts change in place, elsewhere by exactly nothing."""
        assert isinstance(step, SequenceStep)
        known = y < len(self.known)
        scored = torch.where(known if mask is None else known & mask, y, UNSCORED)
        trail, old = Trail(), state.model
        _, new = self.network.step(state.last, scored, old, trail, self.options.lr)
        small = [{name: tree[name] for name in ("h", "c", "cell")} for tree in (new, old)]
        state.model = {**old, **chosen(mask, *small)}
        fold_(state.model, trail)
        state.last = chosen(mask, torch.where(known, y, self.start_token), state.last)
