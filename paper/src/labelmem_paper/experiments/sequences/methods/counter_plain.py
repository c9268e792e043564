"""The per-user counter without recency: how often each label came, mixed with unigram."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.methods.counter import Counter


class PlainCounter(Counter):
    """What the decay brings is seen beside the counter that has one."""

    grid = {name: values for name, values in Counter.grid.items() if name != "decay"} | {
        "decay": [1.0]
    }
    start = Counter.start | {"decay": 1.0}


CONTENDER = PlainCounter
