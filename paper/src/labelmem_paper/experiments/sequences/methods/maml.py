"""MAML: all weights step after every label, and are trained for it."""

from __future__ import annotations

from typing import Any

from labelmem_paper.experiments.sequences.trained import TrainedContender


class MAML(TrainedContender):
    """The step is searched, in use and, with a training each, in training."""

    name = "maml"
    make_with = {"train_lr": "lr"}
    grid = {
        "lr": [0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0],
        "train_lr": [0.1, 0.3, 1.0],
    }
    start = {"lr": 0.3, "train_lr": 0.3}

    def shared_options(self) -> dict[str, Any]:
        """It has no dropout, and its output layer moves on its own."""
        return {}


CONTENDER = MAML
