"""Dynamic evaluation: gradient descent on all weights after every label."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class SGDAll(BaselineContender):
    """The step, and the pull back to where the weights came from."""

    name = "sgd-all"
    grid = {
        "lr": [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.2],
        "decay": [0.0, 0.001, 0.003, 0.01, 0.03],
    }
    start = {"lr": 0.03, "decay": 0.0}


CONTENDER = SGDAll
