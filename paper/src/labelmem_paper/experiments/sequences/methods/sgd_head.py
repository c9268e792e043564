"""Gradient descent on the last layer after every label."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class SGDHead(BaselineContender):
    """The step is all there is to choose."""

    name = "sgd-head"
    grid = {
        "lr": [0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5]
    }
    start = {"lr": 0.05}


CONTENDER = SGDHead
