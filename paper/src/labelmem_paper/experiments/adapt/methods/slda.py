"""Streaming linear discriminant analysis that begins with the training examples."""

from __future__ import annotations

from labelmem_paper.experiments.adapt.contender import AdaptBaseline


class SLDA(AdaptBaseline):
    """How sure to be, and how far to trust the covariance."""

    name = "slda"
    grid = {"temperature": [0.03, 0.1, 0.3, 1.0, 3.0], "shrinkage": [1e-3, 0.01, 0.1, 0.3, 0.9]}
    start = {"temperature": 1.0, "shrinkage": 0.01}


CONTENDER = SLDA
