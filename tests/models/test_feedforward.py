from __future__ import annotations

import pytest
import torch
from torch import nn

from labelmem.errors import ConfigError
from labelmem.models import MLP, ConvNet


def test_the_convnet_of_the_paper() -> None:
    model = ConvNet(labels=250)
    convolutions = [part for part in model.modules() if isinstance(part, nn.Conv2d)]
    assert [part.out_channels for part in convolutions] == [64, 64, 128, 128]
    assert all(part.kernel_size == (3, 3) for part in convolutions)
    linear = [part for part in model.modules() if isinstance(part, nn.Linear)]
    assert linear[-1] is model.head
    assert [(part.in_features, part.out_features) for part in linear] == [(6272, 128), (128, 250)]
    order = [type(part).__name__ for part in model.body]
    assert order == [*["Conv2d", "ReLU", "Conv2d", "ReLU", "MaxPool2d"] * 2, "Flatten", "Linear"]


@pytest.mark.parametrize("size", [4, 5, 7, 28])
def test_images_of_any_size(size: int) -> None:
    model = ConvNet(labels=3, dim=6, size=size, channels=(2, 2, 4, 4))
    images = torch.randn(2, 1, size, size)
    assert model(images).shape == (2, 3)
    torch.testing.assert_close(model.head(model.embed(images)), model(images))


@pytest.mark.parametrize(
    "options",
    [{"channels": (4,)}, {"channels": ()}, {"channels": (4, 0)}, {"size": 3}, {"dim": 0}],
    ids=str,
)
def test_options_of_the_convnet_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        ConvNet(**({"labels": 3} | options))  # type: ignore[arg-type]


@pytest.mark.parametrize("hidden", [(), (5,), (5, 7)])
def test_the_mlp_is_the_formula(hidden: tuple[int, ...]) -> None:
    model = MLP(features=4, labels=3, hidden=hidden, dim=6)
    linear = [part for part in model.modules() if isinstance(part, nn.Linear)]
    assert linear[-1] is model.head and len(linear) == len(hidden) + 2
    x = torch.randn(9, 4)
    h = x
    for part in linear[: len(hidden)]:
        h = (h @ part.weight.T + part.bias).clamp(min=0)
    h = h @ linear[-2].weight.T + linear[-2].bias
    torch.testing.assert_close(model.embed(x), h)
    torch.testing.assert_close(model(x), h @ model.head.weight.T + model.head.bias)


@pytest.mark.parametrize("options", [{"features": 0}, {"hidden": (0,)}, {"dim": 0}], ids=str)
def test_options_of_the_mlp_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        MLP(**({"features": 2, "labels": 3} | options))  # type: ignore[arg-type]


def test_a_gain_brings_every_h_to_one_length() -> None:
    model = ConvNet(labels=3, dim=6, size=4, channels=(2, 2), gain=5.0)
    images = torch.rand(7, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model.embed(images).norm(dim=1), torch.full((7,), 5.0))
    with pytest.raises(ConfigError, match="gain is 0"):
        ConvNet(labels=3, gain=0)
