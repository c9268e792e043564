"""Check-ins in Tokyo: a recurrent network knows the 1,000 busiest venues, users know more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.models import FitOptions, GRUModel, fit_sequences
from labelmem_paper.datasets import Sequences, load
from labelmem_paper.datasets.cache import remember
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.experiments.adapt.frozen import FrozenTask, Stream
from labelmem_paper.experiments.records import digest

__all__ = ["make_checkins"]

KNOWN = 1000
MODEL: Mapping[str, Any] = {"dim": 128, "dropout": 0.5, "tied": True}
USERS, SHORTEST, LONGEST = 20, 50, 300
"""How many test users there are, and the fewest and most of their check-ins."""
SAMPLE = 20_000
"""How many of the training positions are kept."""

Integers = npt.NDArray[np.int64]


def make_checkins(seed: int, cache: Path) -> FrozenTask:
    """The task with one split of the users; its streams are what test users did."""
    options = FitOptions(epochs=20, batch_tokens=6000, lr=2e-3, patience=2, seed=seed)
    of = [KNOWN, MODEL, USERS, SHORTEST, LONGEST, SAMPLE, seed, vars(options)]
    kept = remember(cache / f"checkins-{digest(of)}.npz", lambda: _made(options))
    found = {key: torch.from_numpy(array) for key, array in kept.items()}
    ends = found["lengths"].tolist()
    parts = zip(*(torch.split(found[key], ends) for key in ("shown", "shown_y")), strict=True)
    streams = [Stream(h, y, y) for h, y in parts]
    head = found["weight"], found["bias"]
    return FrozenTask("checkins", *head, found["taught"], found["taught_y"], {"new": streams})


def _made(options: FitOptions) -> Arrays:
    data = load("fsq-tokyo", seed=options.seed)
    number = _numbers(data)
    train, valid, test = (
        [torch.from_numpy(number[array]) for array in data.arrays(part)]
        for part in ("train", "valid", "test")
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        model = GRUModel(KNOWN + 1, **MODEL)  # all other venues are one token more
    fit_sequences(model, [_tokens(y) for y in train], options, [_tokens(y) for y in valid])
    rng = np.random.default_rng(options.seed)
    taught, taught_y = _seen(model, train)
    positions = np.flatnonzero(taught_y.numpy() < KNOWN)
    rows = torch.from_numpy(np.sort(rng.permutation(positions)[:SAMPLE]))
    long = [y[:LONGEST] for y in test if len(y) >= SHORTEST]
    users = [long[i] for i in rng.permutation(len(long))[:USERS].tolist()]
    shown, shown_y = _seen(model, users)
    return {
        "weight": model.head.weight.detach()[:KNOWN].numpy(),
        "bias": model.head.bias.detach()[:KNOWN].numpy(),
        "taught": taught[rows].numpy(),
        "taught_y": taught_y[rows].numpy(),
        "shown": shown.numpy(),
        "shown_y": shown_y.numpy(),
        "lengths": np.array([len(y) for y in users]),
    }


def _numbers(data: Sequences) -> Integers:
    """(venues,) new numbers, the venues that training users go to most being first."""
    visits = np.bincount(np.concatenate(data.arrays("train")), minlength=data.labels)
    number = np.empty(data.labels, np.int64)
    number[np.argsort(-visits, kind="stable")] = np.arange(data.labels)
    return number


def _tokens(y: Tensor) -> Tensor:
    """What the network reads: known venues, and one token for all others."""
    return y.clamp(max=KNOWN)


@torch.no_grad()
def _seen(model: GRUModel, users: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """What the head sees before every check-in of the users, and where that was."""
    start = torch.tensor([model.start_token])
    inputs = [torch.cat([start, _tokens(y)[:-1]]) for y in users]
    h = [model.forward_sequence(tokens[None])[0][0] for tokens in inputs]
    return torch.cat(h), torch.cat(list(users))
