"""Session-based nearest neighbours: the training streams most like the current one."""

from __future__ import annotations

from labelmem.experiments.sequences.baseline import BaselineContender


class SessionKNN(BaselineContender):
    """Neighbours, how fast the past fades, and the mixture with the unigram."""

    name = "session-knn"
    grid = {
        "theta": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98],
        "neighbours": [20, 50, 100, 200, 500],
        "decay": [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0],
        "smoothing": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    }
    start = {"theta": 0.5, "neighbours": 100, "decay": 0.9, "smoothing": 10.0}


CONTENDER = SessionKNN
