from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelmem.errors import ConfigError
from labelmem.split import Split, by_time, by_user


def parts(split: Split) -> tuple[set[int], set[int], set[int]]:
    return set(split.train.tolist()), set(split.valid.tolist()), set(split.test.tolist())


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=80),
    st.floats(0, 0.9),
    st.floats(0, 0.9),
    st.integers(0, 5),
)
def test_whole_users_and_every_sequence_once(
    users: list[int], test: float, valid: float, seed: int
) -> None:
    split = by_user(np.array(users), test=test, valid=valid, seed=seed)
    train, held, tested = parts(split)
    assert sorted([*split.train, *split.valid, *split.test]) == list(range(len(users)))
    owners = [{users[index] for index in part} for part in (train, held, tested)]
    assert not (owners[0] & owners[1] or owners[0] & owners[2] or owners[1] & owners[2])
    assert len(tested) <= round(test * len(users))


def test_one_sequence_each_gives_the_exact_numbers() -> None:
    split = by_user(np.arange(934), test=264 / 934, valid=0.1, seed=0)
    assert [len(part) for part in parts(split)] == [603, 67, 264]


def test_the_seed_decides() -> None:
    users = np.arange(100)
    first, again, other = (by_user(users, test=0.3, valid=0.1, seed=s) for s in (1, 1, 2))
    assert parts(first) == parts(again)
    assert parts(first) != parts(other)


def test_time_order() -> None:
    split = by_time(100, test=0.2, valid=0.1)
    assert split.train.max() < split.valid.min() <= split.valid.max() < split.test.min()
    assert [len(part) for part in parts(split)] == [72, 8, 20]


def test_unknown_part() -> None:
    with pytest.raises(ConfigError, match="'dev'"):
        by_time(4, test=0.5, valid=0).part("dev")  # type: ignore[arg-type]
