"""Users with habits, made by a seeded generator: for the demo and for quick tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.config import check_limits
from labelmem.errors import ConfigError
from labelmem.split import Part, Split, by_user

__all__ = ["SyntheticRecipe", "Visitors", "generate"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SyntheticRecipe:
    """What the made-up users are like.

    Venues are popular by Zipf's law. Each user owns a few favourites, drawn by popularity, a usual
    favourite for each time of the day, and for each favourite another one that tends to follow it.
    At every step a user repeats the last venue (a burst), follows the chain, keeps to the habit of
    the hour, picks any favourite, or, with the remaining probability, explores by popularity. Some
    favourites of the test users are venues that no training user ever visits: new labels.

    Examples
    --------
    >>> SyntheticRecipe(burst=0.6, chain=0.6)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: burst, chain, habit and favourite add up to 1.65; they may reach 1
    """

    users: int = 240
    """How many users there are."""
    labels: int = 400
    """How many venues a model can know from training."""
    new_labels: int = 80
    """How many venues only test users visit; 0 for none."""
    favourites: int = 8
    """How many favourites a user has."""
    new_favourites: int = 2
    """How many of a test user's favourites are new labels."""
    min_length: int = 80
    """Fewest visits of a user."""
    max_length: int = 160
    """Most visits of a user."""
    zipf: float = 1.0
    """Exponent of the popularity; 0 makes all venues alike."""
    hours: int = 6
    """Times of the day that a user's rhythm tells apart."""
    burst: float = 0.15
    """Probability of staying at the last venue."""
    chain: float = 0.25
    """Probability of the favourite that follows the last one."""
    habit: float = 0.30
    """Probability of the favourite of the hour."""
    favourite: float = 0.15
    """Probability of any favourite."""
    test_share: float = 0.3
    """Share of the users to test on."""
    valid_share: float = 0.1
    """Share of the others to validate on."""

    def __post_init__(self) -> None:
        check_limits(self, ("users", "labels", "favourites", "min_length", "hours"))
        total = self.burst + self.chain + self.habit + self.favourite
        if total > 1 + 1e-9:
            raise ConfigError(
                f"burst, chain, habit and favourite add up to {total:.4g}; they may reach 1"
            )
        if min(self.burst, self.chain, self.habit, self.favourite, self.zipf) < 0:
            raise ConfigError("probabilities and zipf must not be negative")
        most = min(self.favourites, self.new_labels)
        if self.new_favourites < 0 or (self.new_labels and self.new_favourites > most):
            raise ConfigError(f"new_favourites is {self.new_favourites}; it must lie in 0..{most}")
        if self.favourites > self.labels:
            raise ConfigError(f"favourites is {self.favourites}, more than labels, {self.labels}")


@dataclass(frozen=True, eq=False)
class Visitors:
    """What made-up users visit, stored end to end."""

    tokens: Integers
    """Venues of all users, end to end."""
    offsets: Integers
    """Where each user's visits start; one entry more than users, the last is the end."""
    users: Integers
    """The number of each user."""
    names: tuple[str, ...]
    """What each venue is called."""
    split: Split
    """Which users are for training, validation and testing."""
    vocabulary: int
    """How many venues a model can know from training; those above are new labels."""

    def arrays(self, part: Part) -> list[Integers]:
        """The visits of the users of one part, as views."""
        users = self.split.part(part).tolist()
        return [self.tokens[self.offsets[user] : self.offsets[user + 1]] for user in users]


def generate(recipe: SyntheticRecipe | None = None, seed: int = 0) -> Visitors:
    """Make users and what they visit.

    Parameters
    ----------
    recipe : what they are like; None for the default.
    seed : of everything that is drawn, the split included.

    Examples
    --------
    >>> data = generate(SyntheticRecipe(users=20), seed=3)
    >>> len(data.users), len(data.names), data.vocabulary
    (20, 480, 400)
    >>> all(max(sequence) < data.vocabulary for sequence in data.arrays("train"))
    True
    """
    recipe = recipe or SyntheticRecipe()
    users = np.arange(recipe.users)
    split = by_user(users, test=recipe.test_share, valid=recipe.valid_share, seed=seed)
    rng = np.random.default_rng((seed, 1))
    visits = _visits(recipe, _favourites(recipe, split, rng), rng)
    lengths = rng.integers(recipe.min_length, recipe.max_length + 1, recipe.users)
    known = [f"venue {index}" for index in range(recipe.labels)]
    new = [f"new venue {index}" for index in range(recipe.new_labels)]
    return Visitors(
        tokens=visits[np.arange(recipe.max_length) < lengths[:, None]],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        users=users,
        names=(*known, *new),
        split=split,
        vocabulary=recipe.labels,
    )


def _popularity(recipe: SyntheticRecipe) -> npt.NDArray[np.float64]:
    weight = np.arange(1, recipe.labels + 1, dtype=np.float64) ** -recipe.zipf
    return np.asarray(weight / weight.sum(), np.float64)


def _favourites(recipe: SyntheticRecipe, split: Split, rng: np.random.Generator) -> Integers:
    """Draw each user's favourites without replacement: the largest of log weight plus Gumbel."""
    keys = np.log(_popularity(recipe)) + rng.gumbel(size=(recipe.users, recipe.labels))
    chosen = np.argsort(-keys, axis=1)[:, : recipe.favourites]
    fresh = rng.random((recipe.users, recipe.new_labels)).argsort(axis=1) + recipe.labels
    if recipe.new_labels and recipe.new_favourites:
        many = recipe.new_favourites
        chosen[split.test, -many:] = fresh[split.test, :many]
    return chosen


def _visits(recipe: SyntheticRecipe, favourites: Integers, rng: np.random.Generator) -> Integers:
    """Walk all users side by side; returns (users, max_length) labels."""
    users, own = favourites.shape
    row = np.arange(users)
    usual = rng.integers(own, size=(users, recipe.hours))
    follows = rng.random((users, own)).argsort(axis=1)
    start = rng.integers(recipe.hours, size=users)
    ways = np.cumsum([recipe.burst, recipe.chain, recipe.habit, recipe.favourite])
    place = usual[row, start]
    label = favourites[row, place]
    visits = np.empty((users, recipe.max_length), np.int64)
    for step in range(recipe.max_length):
        way = np.searchsorted(ways, rng.random(users), side="right")
        hour = (start + step) % recipe.hours
        options = (place, follows[row, place], usual[row, hour], rng.integers(own, size=users))
        moved = np.choose(np.minimum(way, 3), options)
        away = rng.choice(recipe.labels, size=users, p=_popularity(recipe))
        place = np.where(way < 4, moved, place)
        label = np.where(way == 0, label, np.where(way < 4, favourites[row, place], away))
        visits[:, step] = label
    return visits
