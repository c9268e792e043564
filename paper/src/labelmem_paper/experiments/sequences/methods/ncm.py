"""Nearest class mean on the frozen model's h, mixed with the model."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class NCM(BaselineContender):
    """Mixed, since a label may have no mean; with frequencies, since some are visited more."""

    name = "ncm"
    grid = {
        "theta": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "frequency": [0.0, 0.5, 1.0, 1.5, 2.0],
        "prior": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        "temperature": [0.3, 1.0, 3.0, 10.0, 30.0],
        "metric": ["cosine", "euclidean"],
    }
    start = {
        "theta": 0.7,
        "frequency": 1.0,
        "prior": 0.1,
        "temperature": 3.0,
        "metric": "cosine",
    }


CONTENDER = NCM
