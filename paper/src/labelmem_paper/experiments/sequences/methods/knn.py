"""Nearest neighbours among the stream's own past, mixed with the model."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class KNN(BaselineContender):
    """Who votes, how sharply, and against how much of the model."""

    name = "knn"
    grid = {
        "theta": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "sharpness": [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0],
        "neighbours": [8, 32, 128, 512],
    }
    start = {"theta": 0.5, "sharpness": 5.0, "neighbours": 128}


CONTENDER = KNN
