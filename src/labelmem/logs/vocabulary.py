"""Which items the model knows, and the numbers of items in a user's stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.logs.grouping import distinct_pairs
from labelmem.logs.log import Log

__all__ = ["Vocabulary", "tokens_of", "vocabulary_of"]

Integers = npt.NDArray[np.int64]
Recorded = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Vocabulary:
    """The items that are labels of the model; their position is their number.

    Rare items are not folded into one: a user who has such an item gets it as a label of their own,
    numbered above the model's when it first comes, and the memory predicts it from then on.
    """

    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, items: Sequence[str]) -> Integers:
        """For each of ``items`` its number here, -1 for one that the model does not know."""
        places = {name: i for i, name in enumerate(self.names)}
        return np.array([places.get(item, -1) for item in items], np.int64)

    def stream(self, known: Integers, items: Integers) -> Recorded:
        """One user's inputs and labels, as numbers.

        Parameters
        ----------
        known
            What :meth:`numbers` says of the log's items.
        items
            (T,) the user's items as the log numbers them.

        Examples
        --------
        >>> words = Vocabulary(["home", "work"])
        >>> x, y = words.stream(np.array([1, -1, 0]), np.array([0, 1, 2, 1]))
        >>> y  # the second item is rare: label 2, the user's own
        tensor([1, 2, 0, 2])
        >>> x  # what is fed: the start (2), then each label, rare ones one higher
        tensor([2, 1, 3, 0])
        """
        labels = known[items]
        rare = np.flatnonzero(labels < 0)
        if len(rare):
            _, first, which = np.unique(items[rare], return_index=True, return_inverse=True)
            rank = np.empty(len(first), np.int64)
            rank[np.argsort(first)] = np.arange(len(first))
            labels[rare] = len(self) + rank[which]
        y = torch.from_numpy(labels)
        before = torch.cat([torch.full((1,), -1), y[:-1]])
        return tokens_of(before, len(self)), y


def tokens_of(previous: Tensor, known: int) -> Tensor:
    """What is fed after the labels ``previous``, -1 where a stream has none yet.

    The token for that is ``known``; labels of a user's own come after it.
    """
    tokens = torch.where(previous >= known, previous + 1, previous)
    return torch.where(previous < 0, known, tokens)


def vocabulary_of(log: Log, users: Integers, least: int, most: int) -> Vocabulary:
    """The ``most`` widest known items that at least ``least`` of the ``users`` have.

    An item of a single user is of no use to others; how often one user repeats it says nothing.
    """
    chosen = np.isin(log.user, users)
    spread = distinct_pairs(log.user[chosen], log.item[chosen], len(log.items))
    order = np.argsort(-spread, kind="stable")[:most]
    return Vocabulary([log.items[i] for i in order if spread[i] >= least])
