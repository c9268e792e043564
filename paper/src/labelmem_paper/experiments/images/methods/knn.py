"""Nearest neighbours among the pictures of the sequence, mixed with the network."""

from __future__ import annotations

from labelmem_paper.experiments.images.contender import ImageBaseline


class KNN(ImageBaseline):
    """Who votes, how sharply, and against how much of the network."""

    name = "knn"
    grid = {
        "theta": [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
        "sharpness": [1.0, 2.0, 5.0, 10.0, 20.0, 50.0],
        "neighbours": [1, 2, 4, 16],
    }
    start = {"theta": 0.7, "sharpness": 5.0, "neighbours": 16}


CONTENDER = KNN
