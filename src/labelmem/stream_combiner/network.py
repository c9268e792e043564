"""The network of a stream combiner: what its weights make of a look at one step, or at many."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from labelmem.stream_combiner.state import echo_of
from labelmem.stream_look import LOWEST, Look, Spread, blind_columns

__all__ = ["Network"]


class Network(nn.Module):
    """A scorer of labels, a GRU cell, and the way from its state to scores and theta.

    Nothing in it depends on whether a look is at one step (n, …) or at whole streams (n, T, …).
    """

    correct: bool
    sees_h: bool
    blind: tuple[str, ...]
    parts: int | None
    dropout: nn.Dropout
    gru: nn.GRU
    theta_inner: nn.Parameter
    theta_outer: nn.Parameter
    bias_theta: nn.Parameter
    score_plain: nn.Parameter
    score_inner: nn.Parameter
    score_stream: nn.Parameter
    score_bias: nn.Parameter
    score_middle: nn.Parameter
    score_outer: nn.Parameter
    score_moved: nn.Parameter
    features_mean: Tensor
    features_spread: Tensor
    signals_mean: Tensor
    signals_spread: Tensor

    def scaled(self, look: Look) -> Look:
        """The same in the units that :meth:`standardise` found."""
        features = (look.features - self.features_mean) / self.features_spread
        signals = (look.signals - self.signals_mean) / self.signals_spread
        return Look(features * look.leads[..., None], signals, look.base, look.leads)

    @torch.no_grad()
    def standardise(self, looks: Iterable[tuple[Look, Tensor]]) -> None:
        """Bring what is seen in ``looks``, where their masks say so, to mean 0 and spread 1.

        What the combiner is blind to gets an infinite spread: it is always 0.
        """
        spreads = {"features": Spread(), "signals": Spread()}
        for look, mask in looks:
            spreads["features"].add(look.features[look.leads & mask[..., None]])
            spreads["signals"].add(look.signals[mask])
        for (name, spread), blind in zip(
            spreads.items(), blind_columns(self.blind, self.parts or 1), strict=True
        ):
            if spread.rows:
                mean, wide = spread.found()
                wide[blind] = torch.inf
                getattr(self, f"{name}_mean").copy_(mean)
                getattr(self, f"{name}_spread").copy_(wide)

    def unroll(self, look: Look, slot: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor]:
        """Theta (n, T) and the corrected s (n, T, K) of recorded streams, all steps at once.

        Parameters
        ----------
        look
            Of all steps, (n, T, …), in the units of :meth:`scaled`.
        slot
            (n, T) the position of the true label among the labels in memory, -1 for a new one.
        h
            (n, T, d) the model's hidden vectors, if they are seen.
        """
        score, log_s = self.guess(look)
        echo = echo_of((log_s.exp() * look.leads).detach(), slot)
        before = torch.cat([torch.zeros_like(echo[:, :1]), echo[:, :-1]], dim=1)
        mu, _ = self.gru(self.seen(look, log_s, before, h))
        return self.decide(look, score, mu, before)

    def guess(self, look: Look) -> tuple[Tensor, Tensor]:
        """Scores of the labels from their features alone, and the log s they make."""
        score = look.base
        if self.correct:
            shared = look.signals @ self.score_stream.T + self.score_bias
            inner = torch.relu(look.features @ self.score_inner.T + shared[..., None, :])
            inner = torch.relu(self.dropout(inner) @ self.score_middle.T)
            score = score + look.features @ self.score_plain + inner @ self.score_outer
        return score, _log_softmax(score, look.leads)

    def seen(self, look: Look, log_s: Tensor, echo: Tensor, h: Tensor | None) -> Tensor:
        """What enters the GRU cell."""
        seen = [look.signals, echo, *_spread_of(log_s.detach(), look.leads)]
        return torch.cat([*seen, h] if self.sees_h and h is not None else seen, dim=-1)

    def decide(self, look: Look, score: Tensor, mu: Tensor, echo: Tensor) -> tuple[Tensor, Tensor]:
        """Theta and s, the labels' features weighed as mu has it."""
        if self.correct:
            moved = mu @ self.score_moved
            score = score + (look.features @ moved[..., None])[..., 0]
        log_s = _log_softmax(score, look.leads)
        seen = [mu, look.signals, echo, *_spread_of(log_s, look.leads)]
        inner = torch.relu(torch.cat(seen, dim=-1) @ self.theta_inner.T)
        theta = torch.sigmoid(inner @ self.theta_outer + self.bias_theta)
        return theta, log_s.exp() * look.leads


def _log_softmax(score: Tensor, leads: Tensor) -> Tensor:
    """Normalised over the labels in memory; 0 where there is no label, or no memory."""
    empty = ~leads.any(dim=-1, keepdim=True)
    score = score.masked_fill(~leads, -torch.inf).masked_fill(empty, 0.0)
    return torch.log_softmax(score, dim=-1).masked_fill(~leads, 0.0)


def _spread_of(log_s: Tensor, leads: Tensor) -> tuple[Tensor, Tensor]:
    """How undecided s is: its entropy and largest logarithm, (…, 1) each, 0 without memory."""
    s = log_s.exp() * leads
    entropy = -(s * log_s).sum(dim=-1, keepdim=True)
    if not log_s.shape[-1]:
        return entropy, entropy
    top = log_s.masked_fill(~leads, LOWEST).amax(dim=-1, keepdim=True)
    return entropy / 2, torch.where(leads.any(dim=-1, keepdim=True), top, 0.0) / 2
