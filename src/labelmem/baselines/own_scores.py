"""Scores of many streams and their slopes, each with its own copy of a feed-forward network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.models.own_linear import own_linear
from labelmem.models.own_weights import Part, respond
from labelmem.trees import leaves, rebuild, tree_map

__all__ = ["own_scores", "own_slopes"]

Weights = dict[str, Tensor]


def own_scores(
    parts: Sequence[Part],
    weights: Weights,
    rows: Weights,
    x: Tensor,
    _: None,
    *,
    half: bool = False,
) -> tuple[Tensor, tuple[()]]:
    """Logits (n, L + E) of inputs x (n, …), and the next state, which such a network has not.

    Parameters
    ----------
    parts
        The layers, the head last.
    weights, rows
        Those of each stream by parameter, and the rows of its own labels: ``weight`` (n, E, d) and
        ``bias`` (n, E), which counts only where the head has one.
    half
        Whether convolutions compute in 16 bits.
    """
    name, head = parts[-1]
    h = respond(parts[:-1], weights, x, half=half)
    extra = own_linear(h, rows["weight"]) + rows["bias"] * float(f"{name}.bias" in weights)
    return torch.cat([respond([(name, head)], weights, h), extra], dim=1), ()


@torch.enable_grad()
def own_slopes(
    parts: Sequence[Part],
    weights: Weights,
    rows: Weights,
    x: Tensor,
    _: None,
    y: Tensor,
    has: Tensor,
    *,
    half: bool = False,
) -> Any:
    """Slopes of -log P(y) over the labels that the streams ``has`` (n, L + E), as both weights."""
    given = tree_map(lambda leaf: leaf.detach().requires_grad_(), (weights, rows))
    weights, rows = given
    scores = own_scores(parts, weights, rows, x, None, half=half)[0]
    loss = nn.functional.cross_entropy(scores.masked_fill(~has, -torch.inf), y, reduction="sum")
    return rebuild(given, iter(torch.autograd.grad(loss, list(leaves(given)))))
