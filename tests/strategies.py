"""Random options, vectors and observations for the property tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from labelmem import MemoryConfig

DIM, LABELS = 3, 5
# Zero, repeated and parallel vectors beside ordinary ones.
POOL = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [-1.0, 0.5, 0.0], [0.3, 0.2, 0.9]]

configs = st.builds(
    MemoryConfig,
    lam=st.sampled_from([0.0, 1.0, 5.0, 300.0]),
    delta=st.sampled_from([0.0, 0.5, 1.0]),
    margin=st.sampled_from([-1.0, 0.0, 1.0, 50.0]),
    decay=st.sampled_from([0.5, 0.99, 1.0]),
    cells_per_label=st.sampled_from([1, 2, 3, None]),
    capacity=st.sampled_from([None, 1, 3, 7]),
    write_lam=st.booleans(),
    evict=st.sampled_from(["oldest", "weight"]),
)
vectors = st.one_of(
    st.sampled_from(POOL),
    st.lists(st.floats(-2, 2, width=16), min_size=DIM, max_size=DIM),
)


@dataclass(frozen=True)
class Event:
    """One observation: the vector, its label, and what was predicted, as whole weights."""

    h: list[float]
    y: int
    P: list[int]

    def probs(self) -> Tensor:
        weights = torch.tensor([self.P], dtype=torch.float64).reshape(1, -1)
        return weights / max(1, sum(self.P))


def events(min_size: int = 1, max_size: int = 30) -> st.SearchStrategy[list[Event]]:
    guess = st.lists(st.integers(0, 4), min_size=0, max_size=LABELS)
    event = st.builds(Event, vectors, st.integers(0, LABELS - 1), guess)
    return st.lists(event, min_size=min_size, max_size=max_size)
