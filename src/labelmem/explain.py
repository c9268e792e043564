"""Why a prediction came out as it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from labelmem.labels import LabelSpace
from labelmem.memory import MemoryRead

__all__ = ["ExplainedCell", "Explanation"]


@dataclass(frozen=True)
class ExplainedCell:
    """One cell's part in a prediction."""

    label: Any
    weight: float
    """Its share of the read among the cells of its label (Eq. 2)."""
    alpha: float
    """How often, decayed, it was written."""
    share: float
    """Its part of the memory's whole score: weight × s of its label; all cells sum to one."""


@dataclass(frozen=True)
class Explanation:
    """The two voices behind one label's probability, and the cells that spoke loudest.

    Iterating gives the cells, largest share first.

    Examples
    --------
    >>> Explanation("dog", 0.6, 0.5, 0.25, 0.75, (ExplainedCell("dog", 1.0, 2.0, 0.9),))
    Explanation: 'dog' with probability 0.600 (theta 0.500)
      model 25 %, memory 75 % of it
      cell 'dog': share 0.900, weight 1.000, alpha 2.00
    """

    label: Any
    probability: float
    theta: float | None
    model_share: float
    """The part of the label's probability that came from the model."""
    memory_share: float
    """The part that came from the memory."""
    cells: tuple[ExplainedCell, ...]
    evidence: Mapping[str, float] = field(default_factory=dict)
    """In the default form: nats that each feature adds to the label's score."""

    def __iter__(self) -> Iterator[ExplainedCell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def named(self, space: LabelSpace) -> Explanation:
        """The same with the stream's names in place of ids."""
        cells = tuple(replace(cell, label=space.name(cell.label)) for cell in self.cells)
        return replace(self, label=space.name(self.label), cells=cells)

    def __repr__(self) -> str:
        theta = "" if self.theta is None else f" (theta {self.theta:.3f})"
        lines = [f"Explanation: {self.label!r} with probability {self.probability:.3f}{theta}"]
        lines.append(f"  model {self.model_share:.0%}, memory {self.memory_share:.0%} of it")
        lines[1] = lines[1].replace("%", " %")
        if self.evidence:
            nats = ", ".join(f"{name} {value:+.2f}" for name, value in self.evidence.items())
            lines.append(f"  nats: {nats}")
        lines += [
            f"  cell {cell.label!r}: share {cell.share:.3f}, weight {cell.weight:.3f}, "
            f"alpha {cell.alpha:.2f}"
            for cell in self.cells
        ]
        return "\n".join(lines)


def loudest_cells(
    read: MemoryRead, s: Tensor, label: int, top: int = 10
) -> tuple[ExplainedCell, ...]:
    """The cells of ``label`` and the ``top`` others of a one-stream read, largest share first.

    ``s`` (1, W) is the memory's belief as it was mixed, after any correction by a combiner.
    """
    names = read.label[0]
    share = read.weight[0] * s[0, names.clamp(min=0)] if len(names) else read.weight[0]
    wanted = set(share.topk(min(top, len(share))).indices.tolist())
    wanted |= set((names == label).nonzero()[:, 0].tolist())
    order = sorted(wanted, key=lambda m: (-float(share[m]), m))
    return tuple(
        ExplainedCell(
            label=int(names[m]),
            weight=float(read.weight[0, m]),
            alpha=float(read.alpha[0, m]),
            share=float(share[m]),
        )
        for m in order
        if names[m] >= 0
    )
