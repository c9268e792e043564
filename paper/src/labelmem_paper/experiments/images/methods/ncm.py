"""Nearest class mean on the network's h, mixed with the network."""

from __future__ import annotations

from labelmem_paper.experiments.images.contender import ImageBaseline


class NCM(ImageBaseline):
    """A small prior lets one showing move a mean far; a frequency prefers what was shown."""

    name = "ncm"
    grid = {
        "prior": [0.1, 0.3, 1.0, 3.0, 10.0],
        "frequency": [0.0, 0.5, 1.0, 2.0, 4.0, 8.0],
        "temperature": [3.0, 10.0, 30.0, 100.0],
        "theta": [0.5, 0.7, 0.8, 0.9, 1.0],
        "metric": ["cosine", "euclidean"],
    }
    start = {
        "prior": 1.0,
        "frequency": 1.0,
        "temperature": 10.0,
        "theta": 0.9,
        "metric": "cosine",
    }


CONTENDER = NCM
