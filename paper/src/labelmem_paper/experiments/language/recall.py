"""How LMN reads its memory of a text: trained scores of the cells, and a theta for every step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem_paper.experiments.language.answer import Recalled
from labelmem_paper.experiments.language.known_writes import Passage
from labelmem_paper.experiments.language.pieces import Believed

__all__ = ["CELL", "FACTS", "Recall", "RecallState", "facts_of"]

FACTS = ("word", "time", "before", "before that", "alpha", "rate", "slow rate")
"""What a cell remembers of its last write."""
CELL = (
    "cosine", "learned", "alpha", "rate", "slow rate",
    "age", "model", "frequency", "pair", "triple",
)  # fmt: skip
"""What the score of a cell is made of."""
FADES = (80.0, 800.0)
"""Words after which a write counts as a third in the two rates of a cell."""
STEP = 9
"""Numbers about a step beside the projection of h: see :meth:`Recall._step`."""


@dataclass(frozen=True, eq=False)
class RecallState:
    """What is carried from one passage to the next."""

    mu: Tensor
    """(1, n, hidden) state of the recurrent cell."""
    came: Tensor
    """(n, 3) what model and memory gave to the last word, and whether it was in memory."""
    words: Tensor
    """(n,) the word before the one that the next passage sees first."""


class Recall(nn.Module):
    """Scores cells and weighs the memory; trained by minimising -log P.

    Parameters
    ----------
    frequency
        (L,) log-probability of each word in the training text.
    dim
        Size of h.
    key
        Size of the learned key; the paper's is h itself, which is one of the inputs.
    hidden
        Units that score a cell.
    units
        Units of the recurrent cell, which sees how memory and model did lately.
    parts
        Which of :data:`CELL` a score is made of; all of them if None.

    Notes
    -----
    At the start it is LMN-fixed with this lam, delta and theta: all that goes beyond has weight 0.
    """

    frequency: Tensor
    centre: Tensor
    used: Tensor

    def __init__(
        self,
        frequency: Tensor,
        dim: int,
        key: int = 128,
        hidden: int = 32,
        units: int = 64,
        parts: list[str] | None = None,
        lam: float = 10.0,
        delta: float = 0.7,
        theta: float = 0.1,
    ) -> None:
        super().__init__()
        self.register_buffer("frequency", frequency)
        self.register_buffer("centre", torch.zeros(dim))
        unknown = [part for part in parts or () if part not in CELL]
        if unknown:
            raise ConfigError(f"parts holds {unknown[0]!r}; a score can be made of {CELL}")
        used = [float(parts is None or part in parts) for part in CELL]
        self.register_buffer("used", torch.tensor(used))
        self.key = nn.Linear(dim, key, bias=False)
        self.cell = nn.Linear(len(CELL), hidden)
        self.bend = nn.Linear(hidden, 1, bias=False)
        self.plain = nn.Parameter(torch.zeros(len(CELL)))
        self.look = nn.Linear(dim, 16)
        self.rnn = nn.GRU(STEP + 16, units, batch_first=True)
        self.say = nn.Linear(units, 2 + len(CELL))
        with torch.no_grad():
            nn.init.normal_(self.key.weight, std=key**-0.5)
            for weight in (self.bend.weight, self.say.weight, self.say.bias):
                weight.zero_()
            self.plain[CELL.index("cosine")] = lam
            self.plain[CELL.index("alpha")] = delta
            self.say.bias[0] = math.log(theta / (1 - theta))

    def begin(self, streams: int) -> RecallState:
        """Before the first word."""
        weight = self.say.weight
        return RecallState(
            weight.new_zeros(1, streams, self.rnn.hidden_size),
            weight.new_zeros(streams, 3),
            torch.full((streams,), -1, device=weight.device),
        )

    def keys(self, h: Tensor) -> Tensor:
        """What is compared and summed: h without what all h have in common."""
        return h - self.centre

    def forward(
        self, piece: Believed, passage: Passage, state: RecallState
    ) -> tuple[Recalled, RecallState]:
        """The memory's belief before each word of a piece."""
        facts, alive = passage.facts(), passage.alive
        words = facts[..., 0].long()
        log_r = piece.log_r_of(words)
        x = self._cells(piece, passage, facts, words, log_r, state)
        score = x @ self.plain + self.bend(torch.tanh(self.cell(x)))[..., 0]
        first = _belief(score, alive)
        steps = self._step(piece, first, words, log_r, score, alive, state)
        mu, last = self.rnn(steps, state.mu)
        said = self.say(mu)
        theta, sharp, shift = said[..., 0], said[..., 1], said[..., 2:]
        score = score * sharp.exp()[..., None] + (x @ shift[..., None])[..., 0]
        s = _belief(score, alive)
        came = self._came(piece, first, words)[:, -1]
        carried = RecallState(last.detach(), came.detach(), piece.x[:, -1])
        return Recalled(words, s, torch.sigmoid(theta)), carried

    def _cells(
        self,
        piece: Believed,
        passage: Passage,
        facts: Tensor,
        words: Tensor,
        log_r: Tensor,
        state: RecallState,
    ) -> Tensor:
        """(n, C, N, parts) all numbers about a size of 1."""
        keys, sums = self.keys(piece.h), passage.held.v
        time = piece.start + torch.arange(piece.y.shape[1], device=words.device)[:, None]
        age = (time - facts[..., 1]).clamp(min=1)
        before = torch.cat([state.words[:, None], piece.x[:, :-1]], dim=1)
        pair = facts[..., 2] == piece.x[..., None]
        parts = [
            passage.cosines(keys, sums),
            passage.cosines(self.key(keys), self.key(sums)),
            facts[..., 4].clamp(min=1).log(),
            *(
                (facts[..., 5 + i].clamp(min=1).log() - age / fade).clamp(min=-8.0) / 4
                for i, fade in enumerate(FADES)
            ),
            age.log() / 4,
            log_r.clamp(min=-20) / 4,
            self.frequency[words] / 4,
            pair,
            pair & (facts[..., 3] == before[..., None]),
        ]
        return torch.stack([part.to(keys.dtype) for part in parts], dim=3) * self.used

    def _step(
        self,
        piece: Believed,
        s: Tensor,
        words: Tensor,
        log_r: Tensor,
        score: Tensor,
        alive: Tensor,
        state: RecallState,
    ) -> Tensor:
        """(n, C, STEP + 16) how sure both are now, how they did before, and what h looks like."""
        total = torch.logsumexp(score.masked_fill(~alive, -30.0), dim=2)
        entropy = -(s * s.clamp(min=1e-9).log()).sum(2)
        came = self._came(piece, s, words)
        earlier = torch.cat([state.came[:, None], came[:, :-1]], dim=1)
        told = torch.stack(
            [
                piece.entropy / 4,
                piece.log_r_top / 2,
                entropy / 4,
                s.amax(2).clamp(min=1e-6).log() / 2,
                total / 8,
                (log_r.exp() * (s > 0)).sum(2),
            ],
            dim=2,
        )
        return torch.cat([told, earlier, torch.tanh(self.look(self.keys(piece.h)))], dim=2)

    def _came(self, piece: Believed, s: Tensor, words: Tensor) -> Tensor:
        """(n, C, 3) what model and memory gave to the word that came; whether it was in memory."""
        own = (words == piece.y[..., None]) & (s > 0)
        found = (s * own).sum(2).clamp(min=1e-4).log() / 4
        return torch.stack([piece.log_r_y.clamp(min=-12) / 4, found, own.any(2).float()], dim=2)


def facts_of(piece: Believed, before: Tensor, weights: Tensor) -> Tensor:
    """(n, C, FACTS) what the cells written in a piece will remember.

    Parameters
    ----------
    before
        (n,) the word before the first input of the piece.
    weights
        (n, C, 3) alpha and the rates after the writes.
    """
    time = piece.start + torch.arange(piece.y.shape[1], device=before.device)
    earlier = torch.cat([before[:, None], piece.x[:, :-1]], dim=1)
    whole = torch.stack([piece.y, time.expand_as(piece.y), piece.x, earlier], dim=2)
    return torch.cat([whole.to(piece.h.dtype), weights], dim=2)


def _belief(score: Tensor, alive: Tensor) -> Tensor:
    """A softmax over the cells that hold something; all 0 where none does."""
    s = torch.softmax(score.masked_fill(~alive, -torch.inf), dim=2)
    return torch.where(alive, s, torch.zeros_like(s))
