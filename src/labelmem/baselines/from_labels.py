"""Methods that are made from the labels alone, without a model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

import torch

from labelmem.baselines.base import Baseline
from labelmem.baselines.state import TensorState
from labelmem.labels import KnownLabels

__all__ = ["FromLabels"]

S = TypeVar("S", bound=TensorState)
O = TypeVar("O")  # noqa: E741  # the type of the options


class FromLabels(Baseline[S, O]):
    """Needs to know which labels there are, and nothing else.

    Parameters
    ----------
    labels
        The known labels, or how many there are (0..L-1).
    options
        What can be chosen; None takes the defaults.
    device
        Where to compute.
    """

    needs_model = False

    def __init__(
        self,
        labels: Iterable[Hashable] | int,
        options: O | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.known = KnownLabels(labels)
        self.options = self.Options() if options is None else options
        self.device = torch.device(device)
