"""The memory of LMN over a text: writes known beforehand, reads of a piece at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from labelmem.config import check_limits
from labelmem.errors import ConfigError
from labelmem_paper.experiments.language.answer import Recalled
from labelmem_paper.experiments.language.known_writes import Entries, Held, Passage
from labelmem_paper.experiments.language.ledger import Ledger
from labelmem_paper.experiments.language.pieces import Believed, Piece
from labelmem_paper.experiments.language.recall import FACTS, FADES, Recall, RecallState, facts_of

__all__ = ["TextMemory", "TextMemoryOptions"]


@dataclass(frozen=True)
class TextMemoryOptions:
    """What is written, and how long it stays.

    Examples
    --------
    >>> TextMemoryOptions(capacity=0)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: capacity is 0; it must be at least 1
    """

    capacity: int = 100
    """Cells, one for each word."""
    margin: float = 1.0
    """Nats by which the model alone must lead on a word; a smaller lead is written."""
    decay: float = 0.99
    """Factor on the weight of a cell when it is written again."""
    keep: float = 1.0
    """Share of a cell's vector that a write keeps; below 1 it is about the latest occasions."""
    touch: bool = True
    """Whether a word that comes again unwritten keeps its cell from being the oldest."""

    def __post_init__(self) -> None:
        check_limits(self, ("capacity",))
        if not 0 < self.keep <= 1:
            raise ConfigError(f"keep is {self.keep}; it must lie in (0, 1]")


@dataclass
class TextMemory:
    """The memories of n streams with the network that reads them."""

    recall: Recall
    options: TextMemoryOptions
    streams: int
    ledgers: list[Ledger] = field(init=False)
    held: Held = field(init=False)
    state: RecallState = field(init=False)

    def __post_init__(self) -> None:
        one = self.options
        self.ledgers = [
            Ledger(one.capacity, one.decay, FADES, one.touch) for _ in range(self.streams)
        ]
        centre = self.recall.centre
        self.held = Held.empty(self.streams, one.capacity, len(centre), len(FACTS), centre)
        self.state = self.recall.begin(self.streams)

    def run(self, piece: Piece) -> Recalled:
        """Read before every word of a piece, and write what is to be written."""
        return self.read(piece, self.enter(piece))

    def enter(self, piece: Piece) -> Entries:
        """The writes of a piece, which depend on the model and the words alone."""
        lead = piece.log_r_y - piece.log_r_other
        gate = (lead < self.options.margin).tolist()
        writes = [
            ledger.advance(words, now)
            for ledger, words, now in zip(self.ledgers, piece.y.tolist(), gate, strict=True)
        ]
        return Entries.of(writes, piece.h)

    def read(self, piece: Believed, entries: Entries) -> Recalled:
        """:meth:`run` where the writes are known."""
        passage = self._passage(piece, entries)
        recalled: Recalled
        recalled, self.state = self.recall(piece, passage, self.state)
        self.held = passage.after(self.recall.keys(piece.h))
        return recalled

    def skip(self, piece: Believed, entries: Entries) -> Passage:
        """Write without reading."""
        passage = self._passage(piece, entries)
        self.held = passage.after(self.recall.keys(piece.h))
        self.state = replace(self.recall.begin(self.streams), words=piece.x[:, -1])
        return passage

    def _passage(self, piece: Believed, entries: Entries) -> Passage:
        facts = facts_of(piece, self.state.words, entries.weights)
        return Passage(self.held, entries, facts, self.options.keep)
