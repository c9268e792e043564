"""Handwritten digits of scikit-learn, 8 x 8: seven known, three new, a network of one layer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import nn

from labelmem.models import FitOptions, fit_classifier
from labelmem.models.feed_forward import FeedForward
from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.networks import network_task
from labelmem_paper.experiments.records import digest

__all__ = ["make_digits"]

KNOWN = 7


def make_digits(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known digits."""
    pictures, labels = needed("sklearn.datasets", "digits").load_digits(return_X_y=True)
    x = torch.from_numpy(pictures).float() / 16

    options = FitOptions(epochs=200, lr=3e-3, patience=10, seed=seed)
    train = partial(fit_classifier, options=options)
    kept = cache / f"digits-{digest([KNOWN, seed, vars(options)])}.npz"
    return network_task("digits", x, deal(labels, KNOWN, seed), seed, _network, train, kept)


def _network() -> FeedForward:
    return FeedForward(nn.Sequential(nn.Linear(64, 64), nn.ReLU()), 64, KNOWN)
