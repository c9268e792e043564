"""Descent on all weights of many copies of a chain of plain layers, without ``torch.vmap``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from labelmem.baselines.sgd_all import SGDAll, SGDAllOptions
from labelmem_paper.experiments.images.own_scores import Outer, own_scores, own_slopes
from labelmem_paper.experiments.images.own_weights import Part, known_parts

__all__ = ["ChainSGD", "ChainSGDOptions"]

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class ChainSGDOptions(SGDAllOptions):
    """How to step, and how exactly."""

    half: bool = False
    """Whether convolutions compute in 16 bits, which is often faster."""


class ChainSGD(SGDAll):
    """``sgd-all`` for networks of convolutions, which vmap would make slow.

    Other networks step as in the base class. A new label may start from a row that is given.
    """

    Options = ChainSGDOptions
    options: ChainSGDOptions
    start_row: Weights | None = None
    """``weight`` (d,) and ``bias`` () of a new label before its first step; None: zeros."""

    def scores(self, weights: Weights, rows: Weights, x: Any, model_state: Any) -> tuple[Any, Any]:
        """Logits (n, L + E), and no state."""
        parts = self._chain(x)
        if parts is None:
            return super().scores(weights, rows, x, model_state)
        return own_scores(parts, weights, rows, x, half=self.options.half), ()

    def slopes(self, weights: Weights, rows: Weights, *example: Any) -> Any:
        """Slopes in all weights; those of linear layers as products of two vectors."""
        x, _, y, has = example
        parts = self._chain(x)
        if parts is None:
            return super().slopes(weights, rows, *example)
        return own_slopes(parts, weights, rows, x, y, has, half=self.options.half)

    def step_(self, moving: Tensor, weight: Tensor, slope: Any, origin: Tensor) -> None:
        """Step in place; products of two vectors are added without being written out."""
        if not isinstance(slope, Outer):
            return super().step_(moving, weight, slope, origin)
        if self.options.decay:
            each = moving.view(-1, 1, 1).expand_as(weight)
            weight.lerp_(origin.expand_as(weight), self.options.decay * each)
        slope.add_to_(weight, -self.options.lr * moving)

    def fresh_row(self) -> Weights:
        """What was given, or zeros."""
        if self.start_row is None:
            return super().fresh_row()
        return {name: row[None, None] for name, row in self.start_row.items()}

    def _chain(self, x: Any) -> list[Part] | None:
        parts = None if self.backbone.recurrent else known_parts(self.backbone.model, x)
        return parts if parts and parts[-1][1] is self.backbone.head else None
