"""Rei: a vector of the sequence that moves after every label."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.trained import TrainedContender


class Rei(TrainedContender):
    """The vector's step is searched, in use and, with a training each, in training."""

    name = "rei"
    make_with = {"train_lr": "lr"}
    grid = {
        "lr": [0.0, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0],
        "train_lr": [0.3, 1.0, 3.0],
        "decay": [0.0, 0.003, 0.01, 0.03, 0.1],
    }
    start = {"lr": 1.0, "train_lr": 1.0, "decay": 0.0}


CONTENDER = Rei
