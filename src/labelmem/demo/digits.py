"""Task 1: a classifier that knows the digits 0 to 6 meets people who draw all ten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from labelmem.demo.task import Size, Task, seeded
from labelmem.models import MLP, FitOptions, fit_classifier
from labelmem.online import Recorded

__all__ = ["KNOWN", "draw_users", "make_digits", "split_images"]

KNOWN = 7
"""The model is trained on the digits below this one."""
FAVOURITES = 4
OFTEN = 0.9
"""How often a user draws one of the favourites rather than any digit."""
TAUGHT = 3
"""Pictures of each known digit to train with: labels are scarce before a model meets its users.

It decides what there is to gain on seen labels: taught with many more, the model alone, which never
has to consider a new label, stays ahead of LMN there.
"""

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def make_digits(size: Size, seed: int) -> Task:
    """Train the model and make the users.

    The bundled pictures are dealt into three pools that share none: to train the model, for the
    validation users and for the test users.
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)  # 1,797 pictures of 8 by 8 grey values in 0..16
    X, y = X / 16.0, y.astype(np.int64)
    rng = np.random.default_rng((seed, KNOWN))
    train, *pools = split_images(y, rng)
    inputs, labels = torch.tensor(X[train], dtype=torch.float32), torch.tensor(y[train])
    with seeded(seed):
        # No layer with ReLU: what it throws away is what would tell the new digits apart.
        model = MLP(X.shape[1], KNOWN, hidden=(), dim=256)
    # So few pictures are all needed: none is held out to stop early by.
    options = FitOptions(epochs=size.model_epochs, lr=3e-3, validation=0.0, seed=seed)
    fit_classifier(model, inputs, labels, options)
    valid, test = (
        draw_users(X, y, pool, many, size.digit_steps, rng)
        for pool, many in zip(pools, size.digit_users, strict=True)
    )
    return Task(
        name="digits",
        story=(
            f"A small network was trained on {len(train)} pictures, {TAUGHT} of each digit from 0 "
            f"to {KNOWN - 1}. It has no output for the digits 7, 8 and 9.",
            f"It now meets {len(test)} people who draw {size.digit_steps} digits each. All ten "
            f"kinds occur, and each person draws {FAVOURITES} of them {OFTEN:.0%} of the time.",
            f"Whatever a method has to choose is chosen on {len(valid)} other people. No picture "
            "is shared between training, them and these.",
        ),
        model=model,
        labels=KNOWN,
        baselines=("static", "ncm", "sgd-head"),
        train=[(inputs, labels.tolist())],
        valid=valid,
        test=test,
        adapter={"partition": True},
        # Without h the combiner cannot learn what a 7 looks like from the validation users, only
        # how far to trust a memory: what it knows holds for labels that nobody has drawn yet.
        combiner={"sees_h": False},
        pictures=(8, 8),
    )


def split_images(y: Integers, rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
    """Deal the pictures of every digit into pools to train, validate and test with.

    A few of each known digit are for training; of the others, four in seven are for validation.

    Examples
    --------
    >>> train, valid, test = split_images(np.arange(10).repeat(28), np.random.default_rng(0))
    >>> len(train), len(valid), len(test)
    (21, 146, 113)
    """
    pools: tuple[list[Integers], ...] = ([], [], [])
    for digit in range(10):
        own = rng.permutation(np.flatnonzero(y == digit))
        taught = TAUGHT if digit < KNOWN else 0
        cuts = [taught, taught + (len(own) - taught) * 4 // 7]
        for pool, part in zip(pools, np.split(own, cuts), strict=True):
            pool.append(part)
    train, valid, test = (np.concatenate(pool) for pool in pools)
    return train, valid, test


def draw_users(
    X: Array, y: Integers, pool: Integers, users: int, steps: int, rng: np.random.Generator
) -> list[Recorded]:
    """Let users draw, mostly their favourites; a picture comes again only when all have come.

    Examples
    --------
    >>> y = np.arange(10).repeat(3)
    >>> X = np.zeros((30, 64))
    >>> [(inputs, drawn)] = draw_users(X, y, np.arange(30), 1, 12, np.random.default_rng(0))
    >>> inputs.shape, len(drawn)
    (torch.Size([12, 64]), 12)
    """
    by_digit = [pool[y[pool] == digit] for digit in range(10)]
    return [_draw(X, y, by_digit, steps, rng) for _ in range(users)]


def _draw(
    X: Array, y: Integers, by_digit: Sequence[Integers], steps: int, rng: np.random.Generator
) -> Recorded:
    favourites = rng.choice(10, FAVOURITES, replace=False)
    often = rng.random(steps) < OFTEN
    drawn = np.where(often, rng.choice(favourites, steps), rng.integers(10, size=steps))
    shuffled = [rng.permutation(own) for own in by_digit]
    earlier = [int((drawn[:t] == digit).sum()) for t, digit in enumerate(drawn)]
    picked = [
        shuffled[digit][times % len(shuffled[digit])]
        for digit, times in zip(drawn.tolist(), earlier, strict=True)
    ]
    return torch.tensor(X[picked], dtype=torch.float32), y[picked].tolist()
