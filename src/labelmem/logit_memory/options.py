"""The constants of the library's default form: counts, probabilities and nats, none to be tuned."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FEATURES", "LogitMemoryOptions"]

FEATURES = (
    "model",
    "choice",
    "new mean",
    "known mean",
    "surprise",
    "count",
    "votes",
    "row",
    "correction",
)
"""What speaks for a label; see :mod:`labelmem.logit_memory.evidence`."""

_START = (1.0, 0.0, 0.7, 0.0, 0.4, 0.0, 1.0, 0.3, 1.0)
_SPREAD = (0.5, 1.0, 0.5, 0.5, 1.0, 0.5, 0.5, 0.5, 0.5)


@dataclass(frozen=True)
class LogitMemoryOptions:
    """Constants of :class:`labelmem.logit_memory.LogitMemory`."""

    capacity: int = 1000
    """The most cells of a stream; the one whose vote for its own label is smallest goes first."""
    gate: float = 0.99
    """An example is written where the probability of its label was smaller."""
    start: tuple[float, ...] = _START
    """The weight of each feature before the first label."""
    spread: tuple[float, ...] = _SPREAD
    """How far from its start a weight is expected to move (a standard deviation)."""
    forget: float = 0.995
    """What is left after a step of what was learned about the weights."""
    strength: float = 16.0
    """Nats that a cell's vote of 1 moves a label at the cell itself."""
    sharpness: float = 3.0
    """The kernel is ``exp(-sharpness / 2 * distance² / size²)``, size² the mean of all cells'."""
    revisits: int = 5
    """Cells that are replayed after each label: their votes are set anew, the rows corrected."""
    rate: float = 0.3
    """How much of its error a replayed cell corrects in the rows."""
    kept: float = 0.999
    """What is left of all corrections after a replay."""
    votes: int = 8
    """Labels that one cell speaks about."""
    top: int = 32
    """Logits of the model that are looked at one by one; the others are taken as equal."""
    certainty: float = 5.0
    """Nats by which a model may be surer than a guess among its labels, on average."""
    pseudo_count: float = 2.0
    """Examples that pull the mean of a label to the mean of all."""
    row: float = 4.0
    """How many of the labels that were true when the model said the same are remembered."""
    noise: float = 0.02
    """The share of wrong labels that is expected before the first label."""
    believed: float = 0.25
    """A cell's label is believed at least so much, however unlikely it is."""
    caution: float = 1.5
    """Nats by which a new label must be ahead of the model's choice before any was revealed."""
    harm: float = 0.012
    """The share of known labels that may be lost to new ones."""
