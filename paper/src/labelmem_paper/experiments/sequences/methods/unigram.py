"""How often each label came in training."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class Unigram(BaselineContender):
    """Only the smoothing is searched."""

    name = "unigram"
    grid = {"smoothing": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]}
    start = {"smoothing": 3.0}


CONTENDER = Unigram
