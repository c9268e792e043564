"""What a method on running text must do, and the form of most: a memory beside a frozen model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from labelmem_paper.experiments.language.answer import Answer, Recalled
from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.experiments.language.pieces import Piece, pieces
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["Beside", "Memory", "TextMethod"]


class TextMethod(Protocol):
    """Reads a text and says, before each word, what it expects."""

    @property
    def modules(self) -> list[nn.Module]:
        """What holds its trained numbers."""

    def read(self, text: Tensor, streams: int, laps: Laps | None = None) -> Iterator[Answer]:
        """Answers for a text (T,) in parallel streams, piece by piece."""


class Memory(Protocol):
    """The memories of some streams."""

    def run(self, piece: Piece) -> Recalled:
        """What is recalled before each word of a piece; the words are remembered as they come."""


@dataclass(frozen=True)
class Beside:
    """A memory beside a frozen model."""

    model: TextLSTM
    opening: int
    """The input before the first word."""
    memory: Callable[[int], Memory] | None = None
    """Makes the memories of so many streams, empty ones; None is the model alone."""
    more: list[nn.Module] = field(default_factory=list)
    """Trained parts beside the model."""

    @property
    def modules(self) -> list[nn.Module]:
        """What holds its trained numbers."""
        return [self.model, *self.more]

    @torch.no_grad()
    def read(self, text: Tensor, streams: int, laps: Laps | None = None) -> Iterator[Answer]:
        """Answers for a text (T,) in parallel streams, piece by piece."""
        laps = laps or Laps()
        memory = None if self.memory is None else self.memory(streams)
        for piece in pieces(self.model, text, streams, self.opening, laps):
            recalled = None
            if memory is not None:
                with laps.part("memory"):
                    recalled = memory.run(piece)
            yield Answer(piece.y, piece.log_r, recalled)
