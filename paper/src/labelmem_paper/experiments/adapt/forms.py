"""The forms of streams: what users may show to a classifier that was trained by somebody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.errors import InputError
from labelmem_paper.experiments.adapt.frozen import Stream

__all__ = ["FORMS", "Pool", "make_streams"]

LONG, REPEATED, FEW, FEW_NEW = 4500, 2500, 150, 200
"""The most steps of a stream: with new labels, with known ones, of one user, of one with both."""
USERS = 8
NOISE = 0.2
"""The share of revealed labels that are wrong in ``noisy``."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Examples that the head was not trained on, of labels it knows and of others."""

    h: Tensor
    """(n, d) features."""
    y: Integers
    """(n,) labels; those from ``known`` on are new."""
    known: int
    """The number L of labels that the head knows."""

    def __post_init__(self) -> None:
        if len(self.h) != len(self.y):
            raise InputError(f"{len(self.h)} features came with {len(self.y)} labels")

    @cached_property
    def labels(self) -> Integers:
        """All labels there are."""
        return np.unique(self.y)

    def of(self, labels: Integers) -> Integers:
        """The rows with one of these labels."""
        return np.flatnonzero(np.isin(self.y, labels))

    @property
    def known_labels(self) -> Integers:
        """The labels that the head knows and that there are examples of."""
        return self.labels[self.labels < self.known]

    @property
    def new_labels(self) -> Integers:
        """The labels that the head does not know."""
        return self.labels[self.labels >= self.known]

    def stream(
        self, rows: Integers, truth: Integers | None = None, y: Integers | None = None
    ) -> Stream:
        """Examples in this order; their own labels where nothing else is said."""
        true = torch.from_numpy(self.y[rows] if truth is None else truth)
        return Stream(self.h[rows], true if y is None else torch.from_numpy(y), true)


def new(pool: Pool, rng: np.random.Generator) -> list[Stream]:
    """Everything there is, known and new labels, in random order."""
    return [pool.stream(_some(np.arange(len(pool.y)), LONG, rng))]


def known(pool: Pool, rng: np.random.Generator) -> list[Stream]:
    """Known labels alone: more of what the head was trained for."""
    return [pool.stream(_known_rows(pool, rng))]


def few(pool: Pool, rng: np.random.Generator) -> list[Stream]:
    """Users who each need a few of the known labels."""
    wanted = max(2, min(10, pool.known // 3))  # one label alone would ask nothing
    return [
        pool.stream(_some(pool.of(_some(pool.known_labels, wanted, rng)), FEW, rng))
        for _ in range(USERS)
    ]


def few_new(pool: Pool, rng: np.random.Generator) -> list[Stream]:
    """Users who each need a few of the known labels and up to three new ones."""
    wanted = 7 if pool.known >= 7 else max(1, pool.known // 2)
    streams = []
    for _ in range(USERS):
        old, others = _some(pool.known_labels, wanted, rng), _some(pool.new_labels, 3, rng)
        streams.append(pool.stream(_some(pool.of(np.append(old, others)), FEW_NEW, rng)))
    return streams


def swapped(pool: Pool, rng: np.random.Generator) -> list[Stream]:
    """Known labels, half of which change their meaning among each other half-way."""
    rows = _known_rows(pool, rng)
    moved = _some(np.arange(pool.known), max(2, pool.known // 2), rng)
    meaning = np.arange(pool.known)
    meaning[moved] = np.roll(moved, 1)  # a single cycle leaves no label where it was
    truth = pool.y[rows].copy()
    later = slice(len(rows) // 2, None)
    truth[later] = meaning[truth[later]]
    return [pool.stream(rows, truth)]


def noisy(pool: Pool, rng: np.random.Generator) -> list[Stream]:
    """As ``new``, but a fifth of what is revealed is another label, drawn from all there are."""
    rows = _some(np.arange(len(pool.y)), LONG, rng)
    y = pool.y[rows].copy()
    wrong = _some(np.arange(len(rows)), round(NOISE * len(rows)), rng)
    places = np.searchsorted(pool.labels, y[wrong])
    drawn = rng.integers(len(pool.labels) - 1, size=len(wrong))
    y[wrong] = pool.labels[drawn + (drawn >= places)]
    return [pool.stream(rows, y=y)]


FORMS: Mapping[str, Callable[[Pool, np.random.Generator], list[Stream]]] = {
    "new": new,
    "known": known,
    "few": few,
    "few-new": few_new,
    "swapped": swapped,
    "noisy": noisy,
}
"""In each stream an example comes once at most."""


def make_streams(pool: Pool, seed: int) -> dict[str, list[Stream]]:
    """The streams of all forms; each form draws by itself, so that none depends on another.

    Examples
    --------
    >>> pool = Pool(torch.zeros(60, 2), np.arange(60) % 6, known=4)
    >>> {form: len(streams) for form, streams in make_streams(pool, seed=0).items()}
    {'new': 1, 'known': 1, 'few': 8, 'few-new': 8, 'swapped': 1, 'noisy': 1}
    """
    return {
        form: draw(pool, np.random.default_rng((seed, number)))
        for number, (form, draw) in enumerate(FORMS.items())
    }


def _known_rows(pool: Pool, rng: np.random.Generator) -> Integers:
    return _some(pool.of(pool.known_labels), REPEATED, rng)


def _some(items: Integers, most: int, rng: np.random.Generator) -> Integers:
    """Some of the items in random order, none twice."""
    return rng.permutation(items)[:most]
