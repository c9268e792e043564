"""A text under a frozen model, piece by piece: what every method on top of the model sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.methods.fit_text import side_by_side
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["Believed", "Glimpse", "Piece", "pieces"]

AT_ONCE = 1024
"""Words of a piece, all streams together: their logits over all labels fit in memory."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some words of n streams, one after another, and what the model thinks before each."""

    x: Tensor
    """(n, C) the words before."""
    y: Tensor
    """(n, C) the words that come."""
    h: Tensor
    """(n, C, d) what the output layer gets."""
    log_r: Tensor
    """(n, C, L) the model's log-probabilities."""
    start: int
    """Position of the first word in its stream."""

    @cached_property
    def log_r_y(self) -> Tensor:
        """(n, C) of the words that came."""
        return self.log_r.gather(2, self.y[..., None])[..., 0]

    @cached_property
    def log_r_other(self) -> Tensor:
        """(n, C) of the best word that did not come."""
        return self.log_r.scatter(2, self.y[..., None], -torch.inf).amax(2)

    @cached_property
    def log_r_top(self) -> Tensor:
        """(n, C) of the likeliest word."""
        return self.log_r.amax(2)

    @cached_property
    def entropy(self) -> Tensor:
        """(n, C) of the model's belief, in nats."""
        found: Tensor = torch.special.entr(self.log_r.exp()).sum(2)
        return found

    def log_r_of(self, words: Tensor) -> Tensor:
        """(n, C, K) of some words (n, C, K)."""
        return self.log_r.gather(2, words)


@dataclass(frozen=True, eq=False)
class Glimpse:
    """A piece of which only so much is kept as a memory of these words asks for."""

    x: Tensor
    y: Tensor
    h: Tensor
    start: int
    log_r_y: Tensor
    log_r_top: Tensor
    entropy: Tensor
    kept: Tensor
    """(n, C, K) the log-probabilities of the words in memory."""

    @classmethod
    def of(cls, piece: Piece, words: Tensor) -> Glimpse:
        """What a memory that holds ``words`` (n, C, K) before each word asks for."""
        belief = (piece.log_r_y, piece.log_r_top, piece.entropy, piece.log_r_of(words))
        return cls(piece.x, piece.y, piece.h, piece.start, *belief)

    def log_r_of(self, words: Tensor) -> Tensor:
        """(n, C, K) of the words in memory; there is no other."""
        return self.kept


Believed = Piece | Glimpse
"""Some words of n streams, and what one may ask about the model's belief before each."""


@torch.no_grad()
def pieces(
    model: TextLSTM,
    text: Tensor,
    streams: int,
    opening: int,
    laps: Laps | None = None,
    steps: int | None = None,
) -> Iterator[Piece]:
    """Read a text (T,) in parallel streams.

    Parameters
    ----------
    opening
        The input before the first word of the text.
    laps
        Where the time of the model is noted.
    steps
        Words of each stream in a piece; as many as fit if None.
    """
    laps = laps or Laps()
    x, y = side_by_side(text, streams, opening)
    steps = steps or max(1, AT_ONCE // streams)
    state = model.initial_state(streams)
    for start in range(0, x.shape[1], steps):
        words, nexts = x[:, start : start + steps], y[:, start : start + steps]
        with laps.part("model"):
            h, new = model.forward_sequence(words, state)
            state = (new[0], new[1])
        with laps.part("softmax"):
            log_r = torch.log_softmax(model.logits(h), dim=2)
        yield Piece(words, nexts, h, log_r, start)
