"""Gradient descent on the last layer after every label."""

from __future__ import annotations

from labelmem_paper.experiments.images.contender import ImageBaseline


class SGDHead(ImageBaseline):
    """The step is all there is to choose."""

    name = "sgd-head"
    grid = {"lr": [1e-3, 3e-3, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0]}
    start = {"lr": 0.05}


CONTENDER = SGDHead
