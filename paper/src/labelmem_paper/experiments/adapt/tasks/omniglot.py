"""Handwritten characters: a convolutional network knows some, and others turn up."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from labelmem.models import ConvNet
from labelmem.models.feed_forward import FeedForward
from labelmem_paper.datasets import load
from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.networks import network_task
from labelmem_paper.experiments.images.fit_pictures import PictureOptions, bent, fit_steps
from labelmem_paper.experiments.records import digest

__all__ = ["make_omniglot_50", "make_omniglot_250"]

CHANNELS = (32, 32, 64, 64)
TRAINING = PictureOptions(steps=1200, batch=32, lr=2e-3, weight_decay=0.01, bend=0.6)


def make_omniglot_250(seed: int, cache: Path) -> FrozenTask:
    """250 characters are known, ten drawings of each; a hundred are new."""
    return _omniglot("omniglot-250", 250, 100, seed, cache)


def make_omniglot_50(seed: int, cache: Path) -> FrozenTask:
    """50 characters are known, ten drawings of each; 300 are new."""
    return _omniglot("omniglot-50", 50, 300, seed, cache)


def _omniglot(name: str, known: int, new: int, seed: int, cache: Path) -> FrozenTask:
    images = load("omniglot")
    x = torch.from_numpy(images.floats())[:, None]
    dealt = deal(images.character, known, seed, new)
    make = partial(ConvNet, known, size=images.size, channels=CHANNELS)
    kept = cache / f"{name}-{digest([known, new, seed, CHANNELS, vars(TRAINING)])}.npz"
    return network_task(name, x, dealt, seed, make, partial(_train, seed=seed), kept)


def _train(network: FeedForward, x: Tensor, y: Tensor, seed: int) -> None:
    def loss(generator: torch.Generator) -> Tensor:
        rows = torch.randint(len(y), (TRAINING.batch,), generator=generator)
        logits = network(bent(x[rows], TRAINING.bend, generator))
        return nn.functional.cross_entropy(logits, y[rows])

    fit_steps(network, loss, TRAINING, seed, show=False)
