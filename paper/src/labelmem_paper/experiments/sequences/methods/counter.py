"""The per-user counter: recency-decayed frequency mixed with unigram."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class Counter(BaselineContender):
    """All it can choose is searched: it is the baseline to beat."""

    name = "counter"
    grid = {
        "theta": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98],
        "decay": [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0],
        "power": [0.5, 0.7, 0.85, 1.0, 1.2, 1.5],
        "smoothing": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    }
    start = {"theta": 0.5, "decay": 0.98, "power": 1.0, "smoothing": 3.0}


CONTENDER = Counter
