"""Streaming linear discriminant analysis on the network's h, mixed with the network."""

from __future__ import annotations

from labelmem_paper.experiments.images.contender import ImageBaseline


class SLDA(ImageBaseline):
    """As nearest class mean, with a covariance in place of a metric."""

    name = "slda"
    grid = {
        "prior": [0.1, 0.3, 1.0, 3.0, 10.0],
        "frequency": [0.0, 0.5, 1.0, 2.0, 4.0, 8.0],
        "temperature": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
        "theta": [0.5, 0.7, 0.8, 0.9, 1.0],
        "shrinkage": [0.01, 0.1, 0.3, 1.0],
    }
    start = {
        # From here new labels stand a chance; a larger prior keeps them out of reach of the search.
        "prior": 0.1,
        "frequency": 2.0,
        "temperature": 0.1,
        "theta": 0.9,
        "shrinkage": 0.3,
    }


CONTENDER = SLDA
