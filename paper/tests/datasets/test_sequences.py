from __future__ import annotations

import numpy as np
import pytest
from labelmem_paper.datasets import Sequences, Source

from labelmem.errors import DataError
from labelmem.split import by_time


def make(tokens: list[int], offsets: list[int], users: int = 2) -> Sequences:
    return Sequences(
        "toy",
        tokens=np.array(tokens),
        offsets=np.array(offsets),
        users=np.arange(users),
        names=("a", "b", "c"),
        split=by_time(users, test=0.5, valid=0),
        source=Source("generated"),
    )


def test_views_of_the_flat_tokens() -> None:
    data = make([0, 1, 2, 2], [0, 3, 4])
    assert [sequence.tolist() for sequence in data] == [[0, 1, 2], [2]]
    assert data[-1].tolist() == [2]
    assert data[0].base is data.tokens
    assert data.lengths.tolist() == [3, 1]
    assert data.arrays("train")[0].tolist() == [0, 1, 2]
    with pytest.raises(IndexError):
        data[2]


@pytest.mark.parametrize(
    ("tokens", "offsets"),
    [([0, 1], [0, 1]), ([0, 1], [0, 1, 5]), ([0, 3], [0, 1, 2]), ([-1], [0, 0, 1])],
)
def test_what_does_not_fit_is_refused(tokens: list[int], offsets: list[int]) -> None:
    with pytest.raises(DataError, match="toy: "):
        make(tokens, offsets)
