"""A vector of the sequence beside an LSTM, moved by gradient descent after every label."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.baselines.base import require
from labelmem_paper.methods.sequence_method import SequenceMethod, SequenceOptions, scored_loss
from labelmem_paper.methods.sequence_vector import SequenceVectorLSTM, VectorState

__all__ = ["Rei", "ReiOptions"]


@dataclass(frozen=True)
class ReiOptions(SequenceOptions):
    """The vector, and how it moves."""

    vector: int = 50
    """Size of the sequence's vector."""
    lr: float = 0.1
    """Learning rate of the vector."""
    decay: float = 0.0
    """Share of the way back to zero that each step goes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.vector >= 1, "vector", self.vector, "must be at least 1")
        good = self.lr >= 0 and math.isfinite(self.lr)
        require(good, "lr", self.lr, "must be a number from 0")
        require(0 <= self.decay < 1, "decay", self.decay, "must lie in [0, 1)")


class Rei(SequenceMethod[ReiOptions]):
    """Only the sequence's own vector learns online: one step on -log P(y) after every label.

    The gradient goes through the step that was predicted, not further back. In training the vectors
    move in the same way along each sequence, with the same ``lr``, while the weights of the network
    are trained; the vectors are constants of that gradient, as they are new for every sequence.

    Examples
    --------
    >>> method = Rei(labels=3, options=ReiOptions(lr=1.0, dim=8))
    >>> stream = method.stream()
    >>> for _ in range(50):
    ...     p = stream.predict(None)
    ...     stream.observe(2)
    >>> stream.predict(None).label
    2

    References
    ----------
    Rei (2015), Online Representation Learning in Recurrent Neural Language Models.
    """

    name = "rei"
    Options = ReiOptions
    online_options = ("lr", "decay")
    network: SequenceVectorLSTM

    def made_network(self) -> SequenceVectorLSTM:
        """An LSTM that the vector enters."""
        o = self.options
        return SequenceVectorLSTM(len(self.known), o.dim, o.vector, o.dropout, o.tied)

    def begin(self, streams: int) -> VectorState:
        """Zeros everywhere, the vector included."""
        return self.network.initial_state(streams)

    def respond(self, tokens: Tensor, state: VectorState) -> tuple[Tensor, VectorState]:
        """What the network says with the vectors as they are."""
        logits, after = self.network(tokens, state)
        return logits, after

    def learned(
        self, tokens: Tensor, y: Tensor, before: VectorState, after: VectorState
    ) -> VectorState:
        """The vector moved; h and c stay as they came out before."""
        _, (_, _, v) = self._step(tokens, y, before)
        return after[0], after[1], v

    def window(self, tokens: Tensor, y: Tensor, state: VectorState) -> tuple[Tensor, VectorState]:
        """The vectors move from label to label; the loss is the network's, vector by vector."""
        total, training = state[0].new_zeros(()), torch.is_grad_enabled()
        for t in range(tokens.shape[1]):
            losses, state = self._step(tokens[:, t], y[:, t], state)
            total = total + losses.sum()
            if not training:  # let go of the graph that was needed for the vector alone
                total, state = total.detach(), (state[0].detach(), state[1].detach(), state[2])
        return total, state

    @torch.enable_grad()
    def _step(self, tokens: Tensor, y: Tensor, state: VectorState) -> tuple[Tensor, VectorState]:
        """The losses (n,) of one step, and the state after it with the vectors moved."""
        h, c, v = state
        v = v.detach().requires_grad_()
        logits, (h, c, _) = self.network(tokens, (h, c, v))
        losses = scored_loss(logits, y)
        # Streams share nothing but the weights: the slope of the sum is the slope of each.
        (slope,) = torch.autograd.grad(losses.sum(), v, retain_graph=True)
        moved = v.detach() - self.options.lr * slope - self.options.decay * v.detach()
        return losses, (h, c, torch.where(y[:, None] >= 0, moved, v.detach()))
