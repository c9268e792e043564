"""What a method believes about some words: the model's belief mixed with that of a memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.metrics import FLOOR

__all__ = ["Answer", "Recalled", "nats_of"]


@dataclass(frozen=True, eq=False)
class Recalled:
    """A belief about the few words that a memory holds, and how far it is trusted.

    A word may stand in several places; its belief is their sum. Where all places are 0 the memory
    is empty, and the model is left alone.
    """

    words: Tensor
    """(n, C, K) the words."""
    s: Tensor
    """(n, C, K) their probabilities; 0 where a place is empty."""
    theta: Tensor | float
    """(n, C), or one number: the weight of the memory."""

    @property
    def weight(self) -> Tensor:
        """(n, C) theta, 0 while the memory is empty."""
        return self.theta * (self.s > 0).any(dim=2)

    def mixed(self, y: Tensor, r: Tensor) -> Tensor:
        """(n, C) P of some words y (n, C) whose probability is r (n, C) without the memory."""
        found = (self.s * (self.words == y[..., None])).sum(2)
        return (1 - self.weight) * r + self.weight * found


@dataclass(frozen=True, eq=False)
class Answer:
    """``P = (1 - theta) r + theta s`` for some words of n streams.

    Examples
    --------
    >>> recalled = Recalled(torch.tensor([[[2, 2, 0]]]), torch.tensor([[[0.5, 0.25, 0.25]]]), 0.4)
    >>> answer = Answer(torch.tensor([[2]]), torch.tensor([[[0.5, 0.3, 0.2]]]).log(), recalled)
    >>> answer.probs(), answer.p_y()
    (tensor([[[0.4000, 0.1800, 0.4200]]]), tensor([[0.4200]]))
    """

    y: Tensor
    """(n, C) the words that came."""
    log_r: Tensor
    """(n, C, L) the model's log-probabilities."""
    recalled: Recalled | None = None
    """None where there is no memory."""

    def p_y(self) -> Tensor:
        """(n, C) the probabilities of the words that came."""
        r = self.log_r.gather(2, self.y[..., None])[..., 0].exp()
        return r if self.recalled is None else self.recalled.mixed(self.y, r)

    def probs(self) -> Tensor:
        """(n, C, L) all probabilities."""
        r = self.log_r.exp()
        if self.recalled is None:
            return r
        theta = self.recalled.weight[..., None]
        return ((1 - theta) * r).scatter_add(2, self.recalled.words, theta * self.recalled.s)

    def nats(self) -> Tensor:
        """(n, C) the loss of each word."""
        return nats_of(self.p_y())


def nats_of(p: Tensor) -> Tensor:
    """The losses of words that had these probabilities."""
    return -torch.log(p.clamp(min=FLOOR))
