from __future__ import annotations

import numpy as np
import torch
from torch import nn

from labelmem.interop.network import Standardised, train_network
from labelmem.models import FitOptions

SHORT = FitOptions(epochs=2)


def test_the_seed_decides_and_the_global_generator_is_left_alone() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    before = torch.get_rng_state()
    first, second, other = (train_network(X, y, 2, (5,), 4, SHORT, s) for s in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    x = torch.tensor(X)
    assert torch.equal(first(x), second(x)) and not torch.equal(first(x), other(x))


def test_one_example_is_enough() -> None:
    model = train_network(np.ones((1, 2)), np.array([0]), 1, (), 4, SHORT, 0)
    assert model(torch.ones(1, 2, dtype=torch.float64)).shape == (1, 1)


def test_scales_do_not_matter() -> None:
    X = torch.tensor(np.random.default_rng(0).normal(size=(50, 2)))
    one, other = Standardised(nn.Identity(), X), Standardised(nn.Identity(), 1e6 * X + 3)
    torch.testing.assert_close(one(X), other(1e6 * X + 3))
