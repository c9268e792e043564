"""A log as streams to train, validate and test on, split by user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from labelmem.errors import DataError
from labelmem.logs.log import Log
from labelmem.logs.recipe import Recipe
from labelmem.logs.summary import first_sights
from labelmem.logs.vocabulary import Vocabulary, vocabulary_of
from labelmem.logs.words import counted
from labelmem.split import Part, by_user

__all__ = ["Parts", "known_only", "split_log", "within"]

Integers = npt.NDArray[np.int64]
Recorded = tuple[Tensor, Tensor]
_FEWEST_USERS = 10


@dataclass(frozen=True)
class Parts:
    """Users by part, in a shuffled order, and what the model will know."""

    log: Log
    users: dict[Part, Integers]
    """Numbers of the users of each part."""
    vocabulary: Vocabulary
    sights: int
    """First sights of known items among training users: what the model is trained on."""
    events: int
    """Events of training users."""

    def streams(self, part: Part) -> list[Recorded]:
        """Inputs and labels of the users of a part."""
        known, offsets = self.vocabulary.numbers(self.log.items), self.log.offsets
        return [
            self.vocabulary.stream(known, self.log.item[offsets[u] : offsets[u + 1]])
            for u in self.users[part]
        ]


def split_log(log: Log, recipe: Recipe, seed: int) -> Parts:
    """Deal the users out, and choose the items that the training users have in common.

    Users with one event are in no part: there is nothing to predict for them.
    """
    lengths = np.diff(log.offsets)
    there = np.flatnonzero(lengths > 1)
    if len(there) < _FEWEST_USERS:
        raise DataError(
            f"{log.path} has {counted(len(there), 'user')} with two events or more; at least "
            f"{_FEWEST_USERS} are needed to train on some and measure on others"
        )
    split = by_user(there, test=recipe.test, valid=recipe.valid, seed=seed)
    rng = np.random.default_rng(seed)
    parts: tuple[Part, ...] = ("train", "valid", "test")
    users = {part: rng.permutation(there[split.part(part)]) for part in parts}
    vocabulary = vocabulary_of(log, users["train"], recipe.least_users, recipe.most_items)
    if len(vocabulary) < 2:
        raise DataError(
            f"{log.path} has {counted(len(vocabulary), 'item')} that two training users or more "
            "have in common; there is nothing to learn from other users. Are the columns the "
            "right ones?"
        )
    mine = np.isin(log.user, users["train"])
    known = vocabulary.numbers(log.items)[log.item] >= 0
    sights = int((first_sights(log) & mine & known).sum())
    return Parts(log, users, vocabulary, sights, int(mine.sum()))


def within(
    streams: Sequence[Recorded],
    most: float,
    steps: int | None = None,
    cost: Callable[[Tensor], int] = len,
    least: int = 0,
) -> list[Recorded]:
    """The first streams, each cut after ``steps``, whose costs add up to about so much.

    Parameters
    ----------
    cost
        What the labels of a stream cost; by default one for each event.
    least
        How many streams there are at least.
    """
    taken: list[Recorded] = []
    total = 0
    for x, y in streams:
        if total >= most and len(taken) >= least:
            break
        taken.append((x[:steps], y[:steps]))
        total += cost(taken[-1][1])
    return taken


def known_only(streams: Sequence[Recorded], known: int) -> list[Tensor]:
    """Labels of each stream without the user's own, for training a model that cannot name them."""
    kept = [y[y < known] for _, y in streams]
    return [y for y in kept if len(y)]
