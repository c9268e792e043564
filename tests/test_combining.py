"""What all combiners share: the GRU cell and the notion of a miss."""

from __future__ import annotations

import torch
from torch import Tensor
from toys import filled

from labelmem.combining import gru, misses


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_gru_is_the_cell_of_torch() -> None:
    cell = filled(torch.nn.GRUCell(4, 3, dtype=torch.float64), seed=2)
    x, state = random(5, 4), random(5, 3, seed=1)
    seen = gru(x @ cell.weight_ih.T + cell.bias_ih, state @ cell.weight_hh.T + cell.bias_hh, state)
    torch.testing.assert_close(seen, cell(x, state), rtol=1e-12, atol=1e-12)


def test_a_miss_is_an_argmax_elsewhere_or_no_belief_at_all() -> None:
    beliefs = [[0.6, 0.4], [0.4, 0.6], [0.5, 0.5], [0.0, 0.0], [0.6, 0.4]]
    y = torch.tensor([0, 0, 0, 0, 7])  # a tie goes to the lowest; 7 is new
    assert misses(torch.tensor(beliefs), y).tolist() == [False, True, False, True, True]
    assert misses(torch.zeros(5, 0), y).all()
