"""Which examples train a classifier, and which it meets later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem_paper.experiments.adapt.forms import Pool, make_streams
from labelmem_paper.experiments.adapt.frozen import FrozenTask

__all__ = ["Deal", "deal"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Deal:
    """Examples with labels numbered anew, known ones first."""

    y: Integers
    """(n,) the numbers."""
    known: int
    """The number L of known labels."""
    taught: Mask
    """(n,) what trains the classifier: some examples of the known labels."""
    shown: Mask
    """(n,) what it meets later: others of these, and those of new labels."""

    @property
    def train_y(self) -> Tensor:
        """The labels of what is taught."""
        return torch.from_numpy(self.y[self.taught])

    def task(
        self, name: str, head: tuple[Tensor, Tensor], train_h: Tensor, shown_h: Tensor, seed: int
    ) -> FrozenTask:
        """The task of a head, given the features of what is taught and of what is shown."""
        pool = Pool(shown_h, self.y[self.shown], self.known)
        return FrozenTask(name, *head, train_h, self.train_y, make_streams(pool, seed))


def deal(
    labels: npt.ArrayLike,
    known: int,
    seed: int,
    new: int | None = None,
    teachable: Mask | None = None,
) -> Deal:
    """Draw which labels are known and which are new.

    Parameters
    ----------
    labels
        (n,) the labels of all examples.
    new
        How many of the other labels take part; all of them if None.
    teachable
        (n,) what may train the classifier, all else being for later; if None, a random half of the
        examples of every label.

    Examples
    --------
    >>> dealt = deal(np.arange(12) % 3, known=2, seed=0)
    >>> dealt.taught.sum(), dealt.shown.sum(), np.unique(dealt.y[dealt.taught])
    (np.int64(4), np.int64(8), array([0, 1]))
    """
    rng = np.random.default_rng(seed)
    values, places = np.unique(labels, return_inverse=True)
    y = rng.permutation(len(values))[places]
    if teachable is None:
        teachable = _halves(y, rng)
        later = (y >= known) | ~teachable
    else:
        later = ~teachable
    last = len(values) if new is None else known + new
    return Deal(y, known, taught=teachable & (y < known), shown=later & (y < last))


def _halves(y: Integers, rng: np.random.Generator) -> Mask:
    """(n,) a random half of the examples of every label."""
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    ranks = np.empty(len(y), np.int64)
    counts = np.bincount(y)
    ranks[order] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    half: Mask = ranks < counts[y] // 2
    return half
