"""The network of a label combiner: Eq. 4 in plain tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmem.combining import gru

__all__ = ["Network"]


class Network(nn.Module):
    """A GRU cell that all labels share, and the way from its states to theta."""

    weight_h: nn.Parameter
    weight_flags: nn.Parameter
    weight_scores: nn.Parameter
    weight_mu: nn.Parameter
    bias_input: nn.Parameter
    bias_mu: nn.Parameter
    weight_theta: nn.Parameter
    bias_theta: nn.Parameter

    def shared(self, h: Tensor, missed: Tensor) -> Tensor:
        """(…, 3 hidden) what h and the two flags put in: one product per step, not per label."""
        return h @ self.weight_h.T + missed @ self.weight_flags.T + self.bias_input

    def cell(self, mu: Tensor, r: Tensor, s: Tensor, shared: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 4: the next states (n, A, hidden), and theta (n, A).

        Parameters
        ----------
        mu, r, s
            (n, A, hidden), (n, A), (n, A) states, and scores of one step ago.
        shared
            (n, 3 hidden) what all labels have in common: :meth:`shared`.
        """
        own = torch.stack([r, s], dim=-1) @ self.weight_scores.T
        mu = gru(shared[:, None] + own, mu @ self.weight_mu.T + self.bias_mu, mu)
        return mu, torch.sigmoid(mu @ self.weight_theta + self.bias_theta)

    def cell_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """What :meth:`cell` is made of, as kernels take it."""
        mixing = (self.weight_mu, self.bias_mu, self.weight_scores)
        return (*mixing, self.weight_theta, self.bias_theta)
