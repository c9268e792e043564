"""Scores of many streams and their slopes, each with its own copy of a feed-forward network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.trees import leaves, rebuild, tree_map
from labelmem_paper.experiments.images.own_linear import own_linear
from labelmem_paper.experiments.images.own_weights import Part, respond

__all__ = ["Outer", "own_scores", "own_slopes"]

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Outer:
    """Matrices (n, a, b) that are products of two vectors each, never written out."""

    left: Tensor
    """(n, a)."""
    right: Tensor
    """(n, b)."""

    def add_to_(self, matrices: Tensor, factor: Tensor) -> None:
        """Add as many times of each as ``factor`` (n,) says, in place."""
        scaled = self.left * factor[:, None]
        matrices.baddbmm_(scaled[:, :, None], self.right[:, None])


def own_scores(
    parts: Sequence[Part],
    weights: Weights,
    rows: Weights,
    x: Tensor,
    *,
    half: bool = False,
    inputs: dict[str, Tensor] | None = None,
) -> Tensor:
    """Logits (n, L + E) of inputs x (n, …).

    Parameters
    ----------
    parts
        The layers, the head last.
    weights, rows
        Those of each stream by parameter, and the rows of its own labels: ``weight`` (n, E, d) and
        ``bias`` (n, E), which counts only where the head has one.
    half, inputs
        As in :func:`labelmem_paper.experiments.images.own_weights.respond`.
    """
    name, head = parts[-1]
    h = respond(parts[:-1], weights, x, inputs, half)
    extra = own_linear(h, rows["weight"]) + rows["bias"] * float(f"{name}.bias" in weights)
    return torch.cat([respond([(name, head)], weights, h, inputs), extra], dim=1)


@torch.enable_grad()
def own_slopes(
    parts: Sequence[Part],
    weights: Weights,
    rows: Weights,
    x: Tensor,
    y: Tensor,
    has: Tensor,
    *,
    half: bool = False,
) -> Any:
    """Slopes of -log P(y) over the labels that the streams ``has`` (n, L + E), as both weights.

    Those of linear layers are :class:`Outer`.
    """
    # A linear layer's slope is that of its outputs, which its bias has too, times its inputs.
    outer = {
        f"{name}.weight": name
        for name, part in parts
        if isinstance(part, nn.Linear) and f"{name}.bias" in weights
    }
    asked = {name: weight for name, weight in weights.items() if name not in outer}, rows
    asked = tree_map(lambda leaf: leaf.detach().requires_grad_(), asked)
    inputs: dict[str, Tensor] = {}
    scores = own_scores(parts, weights | asked[0], asked[1], x, half=half, inputs=inputs)
    loss = nn.functional.cross_entropy(scores.masked_fill(~has, -torch.inf), y, reduction="sum")
    slopes, row_slopes = rebuild(asked, iter(torch.autograd.grad(loss, list(leaves(asked)))))
    for weight, name in outer.items():
        slopes[weight] = Outer(slopes[f"{name}.bias"], inputs[name].detach())
    return {name: slopes[name] for name in weights}, row_slopes
