"""Convolutions with a kernel for each picture against torch's, one picture at a time."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.experiments.images import own_convolution as module
from labelmem_paper.experiments.images.own_convolution import own_convolution
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck


@pytest.fixture(params=["groups", "columns"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a processor and as a GPU does it."""
    monkeypatch.setattr(module, "_by_columns", lambda x: request.param == "columns")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("size", [1, 3, 5])
def test_one_picture_at_a_time(size: int) -> None:
    x, kernel = drawn(3, 2, 6, 5), drawn(3, 4, 2, size, size, seed=1)
    found = own_convolution(x, kernel)
    each = [
        nn.functional.conv2d(x[i : i + 1], kernel[i], padding=size // 2)[0] for i in range(len(x))
    ]
    torch.testing.assert_close(found, torch.stack(each), atol=1e-12, rtol=0)
    slope = drawn(*found.shape, seed=2).detach()
    mine = torch.autograd.grad(found, [x, kernel], slope)
    theirs = torch.autograd.grad(torch.stack(each), [x, kernel], slope)
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@pytest.mark.usefixtures("way")
def test_first_and_second_gradients_by_differences() -> None:
    given = drawn(2, 2, 3, 4), drawn(2, 3, 2, 3, 3, seed=1)
    assert gradcheck(own_convolution, given)
    assert gradgradcheck(own_convolution, given)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("wanted", [0, 1])
def test_either_gradient_alone(wanted: int) -> None:
    given = [drawn(2, 1, 3, 3), drawn(2, 2, 1, 3, 3, seed=1)]
    expected = torch.autograd.grad(own_convolution(*given).square().sum(), given)[wanted]
    given[1 - wanted] = given[1 - wanted].detach()
    (found,) = torch.autograd.grad(own_convolution(*given).square().sum(), given[wanted])
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("way")
def test_in_16_bits_the_types_stay_what_they_are() -> None:
    x, kernel = drawn(2, 3, 5, 4), drawn(2, 4, 3, 3, 3, seed=1)
    found = {}
    for half in (False, True):
        given = [one.detach().float().requires_grad_() for one in (x, kernel)]
        out = own_convolution(*given, half)
        slopes = torch.autograd.grad(out.square().sum(), given, create_graph=True)
        seconds = torch.autograd.grad(sum(slope.square().sum() for slope in slopes), given)
        found[half] = [out, *slopes, *seconds]
    for rounded, exact in zip(found[True], found[False], strict=True):
        assert rounded.dtype == torch.float32
        off = (rounded - exact).norm() / exact.norm()
        assert 0 < float(off.detach()) < 2e-2
