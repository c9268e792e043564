"""Plain few-shot: all labels are shown once, then all once more, and so on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelmem.bootstrap import interval, resampled
from labelmem_paper.experiments.records import Record

__all__ = ["Episode", "draw_episode", "shot_figures"]


@dataclass(frozen=True)
class Episode:
    """Which picture comes when, N steps in all."""

    label: Tensor
    """(N,)."""
    drawing: Tensor
    """(N,) which of the label's drawings."""
    shot: Tensor
    """(N,) how often the label was shown before."""


def draw_episode(labels: int, drawings: int, shots: int, seed: int) -> Episode:
    """Every label is shown once before any is shown twice, each time by another drawing.

    Examples
    --------
    >>> episode = draw_episode(labels=5, drawings=6, shots=2, seed=0)
    >>> episode.shot
    tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    """
    rng = np.random.default_rng(seed)
    drawn = rng.permuted(np.tile(np.arange(drawings), (labels, 1)), axis=1)
    label = np.concatenate([rng.permutation(labels) for _ in range(shots + 1)])
    shot = np.repeat(np.arange(shots + 1), labels)
    parts = (label, drawn[label, shot], shot)
    return Episode(*(torch.from_numpy(part) for part in parts))


def shot_figures(episode: Episode, answers: Tensor, resamples: int = 1000) -> Record:
    """Accuracy after so many showings, with 95 % intervals from drawing labels anew.

    Examples
    --------
    >>> episode = draw_episode(labels=2, drawings=2, shots=1, seed=0)
    >>> shot_figures(episode, episode.label)["metrics"]
    {'shot1': 1.0}
    """
    order = np.lexsort((episode.label.numpy(), episode.shot.numpy()))
    hit = (answers == episode.label).numpy()[order].reshape(int(episode.shot[-1]) + 1, -1)
    labels = hit.shape[1]
    drawn = resampled(hit.T.astype(np.float64), resamples, np.random.default_rng(0)) / labels
    metrics, intervals = {}, {}
    for shot, row in enumerate(hit[1:], start=1):
        metrics[f"shot{shot}"] = float(row.mean())
        intervals[f"shot{shot}"] = list(interval(drawn[:, shot]))
    return {"metrics": metrics, "interval": intervals, "streams": labels, "tokens": hit.size}
