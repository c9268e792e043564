"""Small classifiers, their weights from plain arithmetic."""

from __future__ import annotations

from typing import Any

import torch
from golden.arithmetic import filled
from torch import Tensor, nn

DIM, INPUTS = 6, 4


def perceptron(labels: int, seed: int = 11) -> nn.Sequential:
    """A hidden layer whose output is h, and the head."""
    layers = nn.Sequential(nn.Linear(INPUTS, DIM), nn.Tanh(), nn.Linear(DIM, labels))
    model: nn.Sequential = filled(layers, seed)
    return model


def embedding() -> nn.Linear:
    """A model that knows no label: its output is h."""
    model: nn.Linear = filled(nn.Linear(INPUTS, DIM), 12)
    return model


class Recurrent(nn.Module):
    """A recurrent model of a user's own: its state is a dictionary with a tuple inside."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.lower, self.upper = nn.GRUCell(INPUTS, DIM), nn.LSTMCell(DIM, DIM)
        self.head = nn.Linear(DIM, labels)
        filled(self, 13)

    def initial_state(self, n: int) -> dict[str, Any]:
        zeros = self.head.weight.new_zeros(n, DIM)
        return {"lower": zeros, "upper": (zeros, zeros)}

    def forward(self, x: Tensor, state: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        lower = self.lower(x, state["lower"])
        upper = self.upper(lower, state["upper"])
        return self.head(upper[0]), {"lower": lower, "upper": upper}


def input_and_h(x: Tensor, h: Tensor) -> Tensor:
    """A key of a user's own."""
    return torch.cat([x, h], dim=1)
