"""Users of other kinds than clusters of vectors: tokens, with models that read them, and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from toys import filled

from labelmem.models import GRUModel, HistoryModel

LABELS, START = 9, 9
"""How many labels the models know, and the token that starts a stream."""


def history_model() -> nn.Module:
    model = HistoryModel(LABELS, dim=5, prior=1.5, norm=1.0).eval()
    return filled(model, seed=1, scale=0.5)  # type: ignore[no-any-return]


def gru_model() -> nn.Module:
    return filled(GRUModel(LABELS, dim=5).eval(), seed=1, scale=0.5)  # type: ignore[no-any-return]


def habits_of(seed: int, steps: int, new: Sequence[Any]) -> tuple[Tensor, list[Any]]:
    """A stream whose inputs are its labels before, with a habit and labels that are new."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, LABELS + len(new), (steps,), generator=generator)
    drawn[::3] = 2
    read = torch.where(drawn < LABELS, drawn, START)  # the models know no token for a new label
    x = torch.cat([torch.tensor([START]), read[:-1]])
    return x, [y if y < LABELS else new[y - LABELS] for y in drawn.tolist()]


def tosses_of(seed: int, steps: int, new: Sequence[Any]) -> tuple[Tensor, list[Any]]:
    """Vectors, and labels at random: half of the predictions are wrong. New labels join late."""
    generator, labels = torch.Generator().manual_seed(seed), [0, 1, *new]
    joined = [2 + (len(new) + 1) * t // steps for t in range(steps)]
    y = [int(torch.randint(0, count, (), generator=generator)) for count in joined]
    return torch.randn(steps, 3, generator=generator), [labels[i] for i in y]
