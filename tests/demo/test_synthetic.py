from __future__ import annotations

import numpy as np
import pytest

from labelmem.demo.synthetic import SyntheticRecipe, Visitors, generate
from labelmem.errors import ConfigError


def walks(data: Visitors) -> list[np.ndarray]:
    return [walk for part in ("train", "valid", "test") for walk in data.arrays(part)]


def test_same_seed_same_users() -> None:
    one, two, other = generate(seed=1), generate(seed=1), generate(seed=2)
    assert (one.tokens == two.tokens).all()
    assert (one.split.test == two.split.test).all()
    assert len(one.tokens) != len(other.tokens) or (one.tokens != other.tokens).any()


def test_new_labels_are_met_by_test_users_only() -> None:
    data = generate(seed=0)
    for part in ("train", "valid"):
        assert max(sequence.max() for sequence in data.arrays(part)) < data.vocabulary
    shares = [(sequence >= data.vocabulary).mean() for sequence in data.arrays("test")]
    assert min(shares) > 0
    assert 0.1 < np.mean(shares) < 0.35
    assert data.names[data.vocabulary] == "new venue 0"


def test_lengths_and_numbers() -> None:
    recipe = SyntheticRecipe(users=30, min_length=5, max_length=9, new_labels=0, new_favourites=0)
    data = generate(recipe, seed=0)
    assert len(data.users) == 30
    assert set(np.diff(data.offsets).tolist()) <= set(range(5, 10))
    assert len(data.names) == data.vocabulary == 400


def test_users_have_habits_that_the_crowd_does_not_share() -> None:
    data = generate(seed=0)
    counts = np.bincount(data.tokens, minlength=len(data.names)) / len(data.tokens)
    own = np.mean([np.sum((np.bincount(s) / len(s)) ** 2) for s in walks(data)])
    assert own > 3 * np.sum(counts**2)


def test_popularity_falls_off() -> None:
    recipe = SyntheticRecipe(burst=0, chain=0, habit=0, favourite=0, new_labels=0, new_favourites=0)
    counts = np.bincount(generate(recipe, seed=0).tokens, minlength=400)
    expected = 1 / np.arange(1, 401)
    expected *= counts.sum() / expected.sum()
    assert abs(counts[0] / expected[0] - 1) < 0.1
    assert abs(counts[9] / expected[9] - 1) < 0.25


def test_only_bursts_never_leave_the_first_venue() -> None:
    recipe = SyntheticRecipe(burst=1, chain=0, habit=0, favourite=0)
    assert all(len(set(sequence.tolist())) == 1 for sequence in walks(generate(recipe, seed=0)))


def test_only_habits_repeat_every_day() -> None:
    recipe = SyntheticRecipe(burst=0, chain=0, habit=1, favourite=0, hours=4)
    for sequence in walks(generate(recipe, seed=0)):
        assert (sequence[4:] == sequence[:-4]).all()


@pytest.mark.parametrize(
    "options",
    [{"burst": -0.1}, {"favourites": 500}, {"new_favourites": 9}, {"users": 0}, {"test_share": 1},
     {"min_length": 10, "max_length": 5}, {"chain": 0.9}],
)  # fmt: skip
def test_impossible_options(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        SyntheticRecipe(**options)  # type: ignore[arg-type]
