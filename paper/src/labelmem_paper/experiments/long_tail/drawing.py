"""Streams in which a few labels come all the time and most of them hardly ever."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labelmem.bootstrap import interval, resampled
from labelmem_paper.experiments.few_shot.episode import Episode
from labelmem_paper.experiments.records import Record

__all__ = ["draw_long_tail", "rare_figures"]


def draw_long_tail(labels: int, drawings: int, most: int, seed: int) -> Episode:
    """The label of rank r comes ``most / r`` times but at least twice, in a shuffled stream.

    The drawings of a label take turns, so that frequent labels repeat them.

    Examples
    --------
    >>> stream = draw_long_tail(labels=4, drawings=2, most=6, seed=0)
    >>> torch.bincount(stream.label).sort().values
    tensor([2, 2, 3, 6])
    """
    rng = np.random.default_rng(seed)
    times = np.maximum(most // np.arange(1, labels + 1), 2)
    label = rng.permutation(np.repeat(rng.permutation(labels), times))
    shot = np.empty_like(label)
    for one in range(labels):
        where = np.flatnonzero(label == one)
        shot[where] = np.arange(len(where))
    order = rng.permuted(np.tile(np.arange(drawings), (labels, 1)), axis=1)
    parts = (label, order[label, shot % drawings], shot)
    return Episode(*(torch.from_numpy(part) for part in parts))


def rare_figures(stream: Episode, answers: Tensor, rare: int, resamples: int = 1000) -> Record:
    """Accuracy on labels that come at most ``rare`` times, on the others, and on all.

    First showings do not count. Every prediction weighs alike; the 95 % intervals come from drawing
    labels anew.
    """
    label, counts = stream.label.numpy(), stream.shot.numpy() > 0
    hit = (answers == stream.label).numpy()
    labels = int(label.max()) + 1
    hits = np.bincount(label, hit & counts, labels)
    tokens = np.bincount(label, counts, labels)
    few = np.bincount(label, minlength=labels) <= rare
    metrics, intervals = {}, {}
    for name, part in (("all", few | ~few), ("rare", few), ("frequent", ~few)):
        if part.any():
            sums = np.stack([hits * part, tokens * part], axis=1).astype(np.float64)
            drawn = resampled(sums, resamples, np.random.default_rng(0))
            metrics[name] = float(sums[:, 0].sum() / sums[:, 1].sum())
            intervals[name] = list(interval(drawn[:, 0] / np.maximum(drawn[:, 1], 1)))
    return {"metrics": metrics, "interval": intervals}
