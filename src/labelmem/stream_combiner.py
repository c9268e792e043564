"""A combiner with one recurrent state per stream, and a correction per label in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.combining import Combiner, CombinerState, CombinerStep, View, gru, misses

__all__ = ["StreamCombiner", "StreamState"]

_RATES = (0.7, 0.9, 0.97)  # memories of the rate of novelty: a few, ten, thirty labels long
_LOWEST = -15.0  # logarithms of probabilities are cut here


@dataclass(frozen=True)
class StreamState(CombinerState):
    """Committed state of ``n`` streams."""

    mu: Tensor
    """(n, hidden)."""
    last: Tensor
    """(n, 4) how the last label came: model missed, memory missed, new to memory, log s of it."""
    novelty: Tensor
    """(n, 3) running shares of labels that were new to memory, over shorter and longer pasts."""
    steps: Tensor
    """(n, 1) labels observed."""


class StreamCombiner(Combiner, kind="stream"):
    """Theta for the whole stream from how far the memory could be trusted lately.

    A GRU cell sees the last hits and misses of model and memory, how many labels were new lately,
    the entropies and maxima of r and s, their overlap, the position and, on request, h. Theta is
    the same for all labels. Its cost does not grow with the number of labels.

    With ``correct``, a small network rescores each label *in memory* from its weight, age, cosine,
    s and r: ``s_y`` becomes proportional to ``s_y * exp(f_y)``. Both start at zero, so an untrained
    combiner is LMN-fixed.

    Parameters
    ----------
    hidden
        Size of mu.
    theta
        The fixed weight of the memory from which training starts.
    correct
        Whether labels in memory are rescored.
    rescorer
        Hidden units of the network that rescores.
    sees_h
        Whether h is among the inputs; worth it where the model was trained on much data.
    seed
        Seeds the initial weights.

    Examples
    --------
    >>> Combiner(kind="stream", hidden=8).form()
    {'kind': 'stream', 'hidden': 8, 'correct': True, 'rescorer': 32, 'sees_h': False}
    """

    SIGNALS = 9 + 4 + len(_RATES)
    FEATURES = 6

    weight_input: nn.Parameter
    weight_mu: nn.Parameter
    bias_input: nn.Parameter
    bias_mu: nn.Parameter
    weight_theta: nn.Parameter

    def __init__(
        self,
        hidden: int = 16,
        theta: float = 0.5,
        correct: bool = True,
        rescorer: int = 32,
        sees_h: bool = False,
        kind: str = "stream",
        seed: int = 0,
    ) -> None:
        super().__init__(hidden, theta, seed)
        self.correct, self.rescorer, self.sees_h = correct, rescorer, sees_h

    def form(self) -> dict[str, Any]:
        """All options decide the form of the weights."""
        options = {"correct": self.correct, "rescorer": self.rescorer, "sees_h": self.sees_h}
        return super().form() | options

    def make_weights(self, dim: int, generator: torch.Generator) -> None:
        """A GRU cell over the signals, and two layers over the features of a label."""
        inputs = self.SIGNALS + (dim if self.sees_h else 0)
        self.weight_input = self.uniform(3 * self.hidden, inputs, generator)
        self.weight_mu = self.uniform(3 * self.hidden, self.hidden, generator)
        self.bias_input = nn.Parameter(torch.zeros(3 * self.hidden))
        self.bias_mu = nn.Parameter(torch.zeros(3 * self.hidden))
        self.weight_theta = nn.Parameter(torch.zeros(self.hidden + self.SIGNALS))
        if self.correct:
            seen = self.FEATURES + self.SIGNALS + self.hidden
            self.weight_inner = self.uniform(self.rescorer, seen, generator)
            self.bias_inner = nn.Parameter(torch.zeros(self.rescorer))
            self.weight_outer = nn.Parameter(torch.zeros(self.rescorer))
            self.weight_plain = nn.Parameter(torch.zeros(self.FEATURES))

    def forget_training(self) -> None:
        """Theta and scores depend on nothing again."""
        self.weight_theta.zero_()
        if self.correct:
            self.weight_outer.zero_()
            self.weight_plain.zero_()

    def initial_state(self, streams: int, width: int) -> StreamState:
        """Nothing observed yet."""
        zeros = self.weight_theta.new_zeros
        return StreamState(
            mu=zeros(streams, self.hidden),
            last=zeros(streams, 4),
            novelty=zeros(streams, len(_RATES)),
            steps=zeros(streams, 1),
        )

    def forward(self, state: CombinerState, view: View) -> CombinerStep:
        """Theta of the streams and the corrected belief of the memory. Pure."""
        assert isinstance(state, StreamState)
        signals = self._signals(state, view)
        seen = torch.cat([signals, view.h], dim=1) if self.sees_h else signals
        from_input = seen @ self.weight_input.T + self.bias_input
        mu = gru(from_input, state.mu @ self.weight_mu.T + self.bias_mu, state.mu)
        logit = torch.cat([mu, signals], dim=1) @ self.weight_theta + self.bias_theta
        theta = torch.sigmoid(logit)[:, None].expand_as(view.r)
        if not self.correct:
            return CombinerStep(theta, mu)
        return CombinerStep(theta, mu, self._corrected(view, signals, mu))

    def _signals(self, state: StreamState, view: View) -> Tensor:
        """(n, SIGNALS), each of the order of one."""
        r, s = view.r, view.read.score
        holds = view.read.leads.any(dim=1, keepdim=True).to(r.dtype)
        labels = view.read.leads.sum(dim=1, keepdim=True).to(r.dtype)
        overlap = torch.where(view.s > 0, r, torch.zeros_like(r)).sum(dim=1, keepdim=True)
        now = [
            (state.steps + 1).log() / 3,
            (labels + 1).log() / 3,
            holds,
            _entropy(r) / 5,
            _log_max(r) / 3,
            _entropy(s) / 2,
            _log_max(s) * holds / 2,
            overlap,
            overlap.clamp(min=1e-6).log() / 5,
        ]
        return torch.cat([*now, state.last, state.novelty], dim=1)

    def _corrected(self, view: View, signals: Tensor, mu: Tensor) -> Tensor:
        """``s`` rescored label by label: s exp(f), normalised over the labels in memory."""
        read = view.read
        leads = read.leads
        features = self._features(view)
        shared = torch.cat([signals, mu], dim=1) @ self.weight_inner[:, self.FEATURES :].T
        own = features @ self.weight_inner[:, : self.FEATURES].T
        inner = torch.relu(own + shared[:, None] + self.bias_inner)
        f = features @ self.weight_plain + inner @ self.weight_outer
        log_s = read.score.clamp(min=1e-30).log()
        empty = ~leads.any(dim=1, keepdim=True)
        logits = (log_s + f).masked_fill(~leads, -torch.inf).masked_fill(empty, 0.0)
        return read.spread(torch.softmax(logits, dim=1) * leads, view.r.shape[1])

    def _features(self, view: View) -> Tensor:
        """(n, K, FEATURES) of the labels in memory, at their leading cells."""
        read = view.read
        # A label was last written when the youngest of its cells was.
        age = read.age.scatter_reduce(1, read.group, read.age, "amin").to(view.r.dtype).clamp(min=1)
        r = view.r.gather(1, read.label.clamp(min=0)) if read.label.shape[1] else read.score
        features = [
            read.strength.clamp(min=1e-3).log(),
            age.log() / 2,
            (age < 2).to(age.dtype),
            read.cosine,
            _log(read.score) / 3,
            _log(r) / 5,
        ]
        return torch.stack(features, dim=2) * read.leads[..., None]

    def observe(
        self,
        state: CombinerState,
        step: CombinerStep,
        view: View,
        y: Tensor,
        mask: Tensor | None,
    ) -> StreamState:
        """Remember how the label came: who missed it, and whether the memory knew it."""
        assert isinstance(state, StreamState)
        with torch.no_grad():
            s = view.s if step.s is None else step.s
            s_y = _at(s, y)
            new = (s_y <= 0).to(s.dtype)
            known = _log(s_y) * (1 - new)
            flags = [misses(view.r, y).to(s.dtype), misses(s, y).to(s.dtype), new, known / 4]
            rates = torch.tensor(_RATES, dtype=s.dtype, device=s.device)
            novelty = rates * state.novelty + (1 - rates) * new[:, None]
        after = StreamState(step.mu, torch.stack(flags, dim=1), novelty, state.steps + 1)
        return after.where(mask, state)


def _at(scores: Tensor, y: Tensor) -> Tensor:
    """Scores (n, W) of the labels y (n,); 0 for labels without a column."""
    padded = nn.functional.pad(scores, (0, 1))
    return padded.gather(1, y.clamp(max=scores.shape[1])[:, None])[:, 0]


def _log(p: Tensor) -> Tensor:
    return p.clamp(min=1e-30).log().clamp(min=_LOWEST)


def _log_max(p: Tensor) -> Tensor:
    return _log(p.amax(dim=1, keepdim=True)) if p.shape[1] else p.new_zeros(p.shape[0], 1)


def _entropy(p: Tensor) -> Tensor:
    return -(p * _log(p)).sum(dim=1, keepdim=True)
