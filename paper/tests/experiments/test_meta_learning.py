"""MAML's losses of convolutional networks against vmap, and against differences."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.experiments.images import meta_learning as module
from labelmem_paper.experiments.images import own_convolution as convolution
from labelmem_paper.experiments.images.meta_learning import (
    Lessons,
    adapted_losses,
    any_adapted_losses,
)
from torch import Tensor, nn
from toys import filled

from labelmem.models import ConvNet


def network(gain: float | None = 3.0) -> nn.Sequential:
    net = ConvNet(5, dim=4, size=9, channels=(2, 3, 3, 4), gain=gain)
    model: nn.Sequential = filled(nn.Sequential(net.body, nn.Linear(4, 6)), 0, 0.4).double()
    return model


def lessons(steps: int = 4) -> Lessons:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(3, steps, 1, 9, 9, generator=generator, dtype=torch.float64)
    y = torch.randint(6, (3, steps), generator=generator)
    return Lessons(x, y, torch.rand(3, steps, generator=generator) < 0.7)


def with_slopes(loss: Tensor, model: nn.Module) -> list[Tensor]:
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


@pytest.mark.parametrize("columns", [False, True], ids=["groups", "columns"])
@pytest.mark.parametrize("first_order", [False, True], ids=["second", "first"])
@pytest.mark.parametrize("gain", [None, 3.0])
def test_it_is_the_form_with_vmap(
    gain: float | None, first_order: bool, columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "_by_columns", lambda x: columns)
    model, given = network(gain), lessons()
    found = with_slopes(adapted_losses(model, given, 0.3, first_order), model)
    expected = with_slopes(any_adapted_losses(model, given, 0.3, first_order), model)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)


@pytest.mark.parametrize("first_order", [False, True], ids=["second", "first"])
def test_in_32_bits(first_order: bool) -> None:
    model, given = network().float(), lessons()
    given = Lessons(given.x.float(), given.y, given.counts)
    found = with_slopes(adapted_losses(model, given, 0.3, first_order), model)
    expected = with_slopes(any_adapted_losses(model, given, 0.3, first_order), model)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_second_order_by_differences() -> None:
    model, given, h = network(), lessons(), 1e-6
    slopes = with_slopes(adapted_losses(model, given, 0.3), model)[1:]
    for i, (weight, slope) in enumerate(zip(model.parameters(), slopes, strict=True)):
        generator = torch.Generator().manual_seed(i)
        way = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        sides = []
        for sign in (1, -1):
            with torch.no_grad():
                weight += sign * h * way
            sides.append(float(adapted_losses(model, given, 0.3).detach()))
            with torch.no_grad():
                weight -= sign * h * way
        expected = (sides[0] - sides[1]) / (2 * h)
        assert float((slope * way).sum()) == pytest.approx(expected, abs=1e-6, rel=1e-5)


def test_a_linear_layer_without_a_bias() -> None:
    linear = nn.Sequential(nn.Linear(81, 4, bias=False), nn.Tanh(), nn.Linear(4, 6))
    model = filled(nn.Sequential(nn.Flatten(), linear), 0, 0.2).double()
    found = with_slopes(adapted_losses(model, lessons(), 0.3), model)
    expected = with_slopes(any_adapted_losses(model, lessons(), 0.3), model)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)


def test_one_label_moves_nothing() -> None:
    model, given = network(), lessons(steps=1)
    losses = nn.functional.cross_entropy(model(given.x[:, 0]), given.y[:, 0], reduction="none")
    expected = losses[given.counts[:, 0]].mean()
    torch.testing.assert_close(adapted_losses(model, given, 9.0), expected)


def test_weights_that_move_but_are_not_trained() -> None:
    model, given = network(), lessons()
    everything = adapted_losses(model, given, 0.3)
    trained = model[0].requires_grad_(False)[-2].requires_grad_(True)
    found = with_slopes(adapted_losses(model, given, 0.3), trained)
    torch.testing.assert_close(found[0], everything.detach())
    expected = with_slopes(any_adapted_losses(model, given, 0.3), trained)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(adapted_losses(model, given, 0.3), found[0])


@pytest.mark.parametrize("first_order", [False, True], ids=["second", "first"])
def test_in_16_bits_it_is_nearly_the_same(first_order: bool) -> None:
    model, given = network().float(), lessons()
    given = Lessons(given.x.float(), given.y, given.counts)
    exact = with_slopes(adapted_losses(model, given, 0.3, first_order), model)
    with torch.autocast("cpu", torch.bfloat16):
        loss = adapted_losses(model, given, 0.3, first_order)
    rounded = with_slopes(loss, model)
    assert {one.dtype for one in rounded} == {torch.float32}
    assert 0 < abs(float(rounded[0] - exact[0])) < 1e-2
    one, other = (torch.cat([slope.flatten() for slope in found[1:]]) for found in (rounded, exact))
    assert float(torch.cosine_similarity(one, other, dim=0)) > 0.999


def test_other_networks_take_vmap(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def noted(*given: object) -> Tensor:
        taken.append(given[0])
        return torch.zeros(())

    monkeypatch.setattr(module, "any_adapted_losses", noted)
    other = nn.Sequential(nn.Flatten(), nn.Linear(81, 6), nn.GELU()).double()
    adapted_losses(other, lessons(), 0.1)
    assert taken == [other]
    assert adapted_losses(network(), lessons(), 0.1).requires_grad
