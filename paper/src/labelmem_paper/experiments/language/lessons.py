"""What of a text does not change while a reader of its memory is trained on it.

The model is frozen, and what is written depends on the model and the words alone. So a text is read
once; every epoch after that needs of the model's belief only what it gave to the words in memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from labelmem_paper.experiments.language.answer import nats_of
from labelmem_paper.experiments.language.known_writes import Entries, Held
from labelmem_paper.experiments.language.ledger import Ledger
from labelmem_paper.experiments.language.memory_of_text import TextMemory, TextMemoryOptions
from labelmem_paper.experiments.language.pieces import Glimpse, pieces
from labelmem_paper.experiments.language.recall import Recall
from labelmem_paper.methods.fit_text import side_by_side
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["Lesson", "Reading", "Start", "resumed", "track_starts"]


@dataclass(frozen=True, eq=False)
class Lesson:
    """Some words of each stream, and where they are written."""

    piece: Glimpse
    entries: Entries

    def nats(self, memory: TextMemory) -> Tensor:
        """(n, C) the losses of the words; the memory goes on to the next lesson."""
        piece = self.piece
        return nats_of(memory.read(piece, self.entries).mixed(piece.y, piece.log_r_y.exp()))


@dataclass(frozen=True)
class Reading:
    """A text, the frozen model that reads it, and what of it is remembered."""

    model: TextLSTM
    text: Tensor
    opening: int
    memory: TextMemoryOptions
    _learned: dict[tuple[int, int | None], list[Lesson]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def lessons(self, memory: TextMemory, steps: int | None = None) -> list[Lesson]:
        """The text in as many parts as ``memory`` has streams, ``steps`` words in each lesson.

        They are made only once: a memory must begin as the first of so many streams did. That one
        is used up.
        """
        key = (memory.streams, steps)
        if key not in self._learned:
            self._learned[key] = list(self._read(memory, steps))
        return self._learned[key]

    @torch.no_grad()
    def _read(self, memory: TextMemory, steps: int | None) -> Iterator[Lesson]:
        for piece in pieces(self.model, self.text, memory.streams, self.opening, steps=steps):
            entries = memory.enter(piece)
            passage = memory.skip(piece, entries)
            yield Lesson(Glimpse.of(piece, passage.facts()[..., 0].long()), entries)


@dataclass(frozen=True, eq=False)
class Start:
    """The memory where a track begins."""

    ledger: Ledger
    held: Held
    word: Tensor


@torch.no_grad()
def track_starts(recall: Recall, reading: Reading, tracks: int) -> list[Start]:
    """The memory at the beginning of each track, from one pass over the whole text."""
    memory = TextMemory(recall, reading.memory, 1)
    x, y = side_by_side(reading.text, tracks, reading.opening)
    starts = []
    for track in range(tracks):
        starts.append(Start(copy.deepcopy(memory.ledgers[0]), memory.held, memory.state.words))
        for piece in pieces(reading.model, y[track], 1, int(x[track, 0])):
            memory.skip(piece, memory.enter(piece))
        facts = memory.held.facts.clone()
        facts[..., 1] -= y.shape[1]  # a track counts from its own beginning
        memory.held = replace(memory.held, facts=facts)
    return starts


def resumed(recall: Recall, options: TextMemoryOptions, starts: list[Start]) -> TextMemory:
    """The memories of all tracks, each at its beginning."""
    memory = TextMemory(recall, options, len(starts))
    memory.ledgers = [copy.deepcopy(one.ledger) for one in starts]
    memory.held = Held(
        *(
            torch.cat([getattr(one.held, name) for one in starts])
            for name in ("v", "alive", "count", "facts")
        )
    )
    state = memory.state
    memory.state = replace(state, words=torch.cat([one.word for one in starts]))
    return memory
