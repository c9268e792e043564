"""Streaming linear discriminant analysis on the frozen model's h, mixed with the model."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class SLDA(BaselineContender):
    """As nearest class mean, with a covariance in place of a metric."""

    name = "slda"
    grid = {
        "theta": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "temperature": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
        "frequency": [0.0, 0.5, 1.0, 1.5, 2.0],
        "prior": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        "shrinkage": [0.01, 0.1, 0.3, 1.0],
    }
    start = {
        "theta": 0.7,
        "temperature": 0.03,
        "frequency": 1.0,
        "prior": 0.03,
        "shrinkage": 0.3,
    }


CONTENDER = SLDA
