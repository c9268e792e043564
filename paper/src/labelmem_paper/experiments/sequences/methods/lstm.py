"""A larger LSTM without adaptation: whether a larger state can stand in for a memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labelmem_paper.experiments.sequences.baseline import BaselineContender

TIMES = 5
"""How many times the recurrent parameters of the run's model it has, about."""
GATES = {"gru": 3, "lstm": 4}


def recurrent_parameters(
    kind: str, dim: int, embedding: int | None = None, layers: int = 1, **_: Any
) -> int:
    """Numbers in the recurrent layers of a model; embedding and output layer are apart.

    Examples
    --------
    >>> recurrent_parameters("gru", dim=128), recurrent_parameters("lstm", dim=248)
    (99072, 494016)
    """
    inputs = [dim if embedding is None else embedding, *[dim] * (layers - 1)]
    return sum(GATES[kind] * dim * (width + dim + 2) for width in inputs)


def larger(model: Mapping[str, Any]) -> dict[str, Any]:
    """Kind and dim of the LSTM that comes closest to ``TIMES`` the model's recurrent parameters.

    Examples
    --------
    >>> larger({"kind": "gru", "dim": 128, "tied": True})
    {'kind': 'lstm', 'dim': 248}
    """
    wanted = TIMES * recurrent_parameters(**model)

    def off(dim: int) -> int:
        return abs(recurrent_parameters(**{**model, "kind": "lstm", "dim": dim}) - wanted)

    dim = min(range(1, TIMES * int(model["dim"]) + 1), key=off)
    return {"kind": "lstm", "dim": dim}


class LSTM(BaselineContender):
    """Trained as the run's model is, and used as it is."""

    name = "static"

    def model_changes(self) -> Mapping[str, Any]:
        """Another kind and size."""
        return larger(self.task.config["model"])


CONTENDER = LSTM
