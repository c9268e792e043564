"""Networks with weights for each row against the network itself, one row at a time."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.experiments.images.own_weights import Stepped, known_parts, respond
from torch import Tensor, nn
from torch.func import functional_call
from toys import filled

from labelmem.models import MLP, ConvNet


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def networks() -> dict[str, tuple[nn.Module, Tensor]]:
    pictures = drawn(3, 1, 6, 6)
    plain = ConvNet(5, dim=4, size=6, channels=(2, 3))
    return {
        "convnet": (plain, pictures),
        "one length": (ConvNet(5, dim=4, size=6, channels=(2, 3), gain=3.0), pictures),
        "body and head": (nn.Sequential(plain.body, nn.Linear(4, 7)), pictures),
        "no bias": (
            nn.Sequential(
                nn.Conv2d(1, 2, 5, padding="same", bias=False),
                nn.ReLU(inplace=True),
                nn.Flatten(),
                nn.Linear(72, 3, bias=False),
            ),
            pictures,
        ),
        "vectors": (nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), drawn(3, 4)),
    }


@pytest.mark.parametrize("name", networks())
def test_one_row_at_a_time(name: str) -> None:
    model, x = networks()[name]
    model = model.double()
    weights = {
        key: drawn(len(x), *p.shape, seed=i) for i, (key, p) in enumerate(model.named_parameters())
    }
    parts, entered = known_parts(model, x), dict[str, Tensor]()
    assert parts is not None
    found = respond(parts, weights, x, entered)
    for i in range(len(x)):
        row = {key: weight[i] for key, weight in weights.items()}
        expected = functional_call(model, row, (x[i : i + 1],))
        torch.testing.assert_close(found[i : i + 1], expected, atol=1e-11, rtol=1e-11)
    linear = [key for key, part in model.named_modules() if isinstance(part, nn.Linear)]
    assert sorted(entered) == sorted(linear)
    last = entered[linear[-1]]
    torch.testing.assert_close(respond(parts[-1:], weights, last), found)


def test_steps_are_the_weights_they_lead_to() -> None:
    start, x = drawn(4, 3), drawn(2, 3, seed=1)
    stepped = Stepped.none(start, 2)
    dense = start.expand(2, 4, 3)
    for seed in range(2, 5):
        move, entered = drawn(2, 4, seed=seed), drawn(2, 3, seed=10 + seed)
        torch.testing.assert_close(stepped.times(x), (dense @ x[:, :, None])[:, :, 0])
        stepped = stepped.after(move, entered)
        dense = dense - move[:, :, None] * entered[:, None]
    torch.testing.assert_close(stepped.times(x), (dense @ x[:, :, None])[:, :, 0])


class Doubled(nn.Sequential):
    """A chain that is more than its parts."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def watched() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    model[0].register_forward_hook(lambda *_: None)
    return model


SHARED = nn.Linear(3, 3)
UNKNOWN = {
    "stride": (nn.Conv2d(1, 2, 3, padding=1, stride=2), (2, 1, 6, 6)),
    "no padding": (nn.Conv2d(1, 2, 3), (2, 1, 6, 6)),
    "even kernel": (nn.Conv2d(1, 2, 2, padding=1), (2, 1, 6, 6)),
    "oblong kernel": (nn.Conv2d(1, 2, (3, 1), padding=1), (2, 1, 6, 6)),
    "groups": (nn.Conv2d(2, 2, 3, padding=1, groups=2), (2, 2, 6, 6)),
    "reflection": (nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), (2, 1, 6, 6)),
    "rows of rows": (nn.Sequential(nn.Linear(3, 2), nn.Flatten(), nn.Linear(4, 2)), (2, 2, 3)),
    "half flat": (nn.Sequential(nn.Flatten(2), nn.Flatten()), (2, 1, 3, 3)),
    "two answers": (nn.MaxPool2d(2, return_indices=True), (2, 1, 4, 4)),
    "chance": (nn.Sequential(nn.Linear(3, 2), nn.Dropout()), (2, 3)),
    "rows that meet": (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), (2, 3)),
    "twice the same": (nn.Sequential(SHARED, nn.ReLU(), SHARED), (2, 3)),
    "a chain of its own": (Doubled(nn.Linear(3, 2)), (2, 3)),
    "a hook": (watched(), (2, 3)),
    "another network": (MLP(3, 2), (2, 3)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_left_to_others(name: str) -> None:
    model, shape = UNKNOWN[name]
    assert known_parts(model, torch.zeros(shape)) is None


def test_inputs_that_are_no_tensor_are_left_to_others() -> None:
    assert known_parts(filled(nn.Linear(3, 2), 0), {"x": torch.zeros(2, 3)}) is None
