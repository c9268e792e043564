"""Turn check-ins of many users into label sequences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelmem.config import check_limits
from labelmem.split import by_user
from labelmem_paper.datasets import prepared
from labelmem_paper.datasets.delimited import Table
from labelmem_paper.datasets.filtering import Filters
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.datasets.numbering import number
from labelmem_paper.datasets.problems import nothing_left
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.tables import read_columns

__all__ = ["CheckinRecipe", "Visits", "as_sequences", "prepare", "visits_of"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CheckinRecipe:
    """How check-ins become sequences.

    The steps, in this order: merge repeats; drop rare venues, counted once on what the merging
    left; merge again what now stands side by side; drop users whose sequence is too short or too
    long; number the venues that remain; split by user.

    Examples
    --------
    >>> CheckinRecipe(min_length=30, max_length=20)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: max_length is 20; it must be at least min_length, 30, or None
    """

    merge_repeats: bool = False
    """Whether check-ins at the same venue in a row count once."""
    min_venue_count: int = 1
    """Fewest check-ins of a venue that is kept."""
    min_venue_users: int = 1
    """Fewest different users of a venue that is kept."""
    min_length: int = 1
    """Fewest check-ins of a user who is kept."""
    max_length: int | None = None
    """Most check-ins of a user who is kept; None sets no limit."""
    exact_times_only: bool = False
    """Whether to drop check-ins whose time is known to be an estimate (compact NYC file)."""
    test_share: float = 0.2
    """Share of the users to test on."""
    valid_share: float = 0.1
    """Share of the other users to validate on."""

    def __post_init__(self) -> None:
        check_limits(self, ("min_venue_count", "min_venue_users", "min_length"))

    @property
    def filters(self) -> Filters:
        """The steps that leave check-ins out."""
        return Filters(
            merge_repeats=self.merge_repeats,
            min_count=self.min_venue_count,
            min_groups=self.min_venue_users,
            min_length=self.min_length,
            max_length=self.max_length,
        )


@dataclass(frozen=True)
class Visits:
    """Check-ins sorted by user and then time."""

    users: Integers
    venues: npt.NDArray[np.bytes_]

    @classmethod
    def sorted_by(cls, users: Integers, time: Integers, venues: npt.NDArray[np.bytes_]) -> Visits:
        """Sort by user, then time; ties keep their order."""
        order = np.lexsort((time, users))
        return cls(users[order], venues[order])


def visits_of(tables: Iterable[Table], user: int, time: int, venue: int) -> Visits:
    """The check-ins of tables that hold the user, the time and the venue in these columns."""
    columns = read_columns(
        tables, lambda t: t.integers(user), lambda t: t.integers(time), lambda t: t.strings(venue)
    )
    return Visits.sorted_by(*columns)


def prepare(visits: Visits, recipe: CheckinRecipe, path: Path) -> Arrays:
    """Apply the recipe's steps."""
    venues, names = number(visits.venues)
    users, venues = recipe.filters.apply(visits.users, venues)
    if not len(users):
        raise nothing_left(path, len(visits.users), "check-ins", recipe)
    return prepared.sequence_arrays(
        users, venues, lambda used: [name.decode("latin-1") for name in names[used].tolist()]
    )


def as_sequences(
    name: str, arrays: Arrays, recipe: CheckinRecipe, source: Source, seed: int
) -> Sequences:
    """Make the container, split by user."""
    split = partial(by_user, test=recipe.test_share, valid=recipe.valid_share, seed=seed)
    return prepared.as_sequences(name, arrays, split, source, recipe)
