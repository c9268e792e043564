"""Linear layers with weights for each row against the sum they are."""

from __future__ import annotations

import torch
from labelmem_paper.experiments.images.own_linear import own_linear
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_one_row_at_a_time() -> None:
    x, weight = drawn(3, 4), drawn(3, 2, 4, seed=1)
    found = own_linear(x, weight)
    for i in range(3):
        for j in range(2):
            expected = sum(float(x[i, k].detach() * weight[i, j, k].detach()) for k in range(4))
            assert abs(float(found[i, j].detach()) - expected) < 1e-12


def test_first_and_second_gradients_by_differences() -> None:
    given = drawn(2, 3), drawn(2, 4, 3, seed=1)
    assert gradcheck(own_linear, given)
    assert gradgradcheck(own_linear, given)


def test_no_rows_of_weights_give_no_outputs() -> None:
    x, weight = drawn(2, 3), drawn(2, 0, 3)
    found = own_linear(x, weight)
    assert found.shape == (2, 0)
    slopes = torch.autograd.grad(found.sum(), [x, weight])
    assert [tuple(slope.shape) for slope in slopes] == [(2, 3), (2, 0, 3)]
    assert not slopes[0].any()
