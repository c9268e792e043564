"""What the default form promises to whoever wraps a classifier and tunes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from labelmem import Adapter, Prediction, Stream
from labelmem.fast import compiled, plainly

KNOWN, NEW, DIM = 6, 3, 16


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each promise is kept by compiled steps, and by those of the reference."""
    if request.param == "compiled" and not compiled(narrow=True):
        pytest.skip("numba is not installed")
    with plainly() if request.param == "plain" else nullcontext():
        yield


class World:
    """Clusters, and a head that is right about most of the first."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.centres = 2.2 * nn.functional.normalize(self._normal(KNOWN + NEW, DIM), dim=1)
        self.weight, self.bias = 4 * self.centres[:KNOWN], -2 * self.centres[:KNOWN].square().sum(1)

    def _normal(self, *size: int) -> Tensor:
        return torch.randn(*size, generator=self.generator)

    def head(self, weight: float = 1.0, bias: bool = True, inputs: float = 1.0) -> nn.Linear:
        layer = nn.Linear(DIM, KNOWN, bias=bias)
        with torch.no_grad():
            layer.weight.copy_(self.weight * weight / inputs)
            if bias:
                layer.bias.copy_(self.bias * weight)
        return layer

    def draw(self, steps: int, kinds: int = KNOWN + NEW) -> tuple[Tensor, list[int]]:
        y = torch.randint(kinds, (steps,), generator=self.generator)
        return self.centres[y] + 0.5 * self._normal(steps, DIM), y.tolist()


def name(kind: int) -> int | str:
    return kind if kind < KNOWN else f"new {kind}"


def played(stream: Stream, x: Tensor, y: list[int]) -> list[Prediction]:
    predictions = []
    for row, kind in zip(x, y, strict=True):
        predictions.append(stream.predict(row))
        stream.observe(name(kind))
    return predictions


def right(predictions: list[Prediction], y: list[int], new: bool) -> float:
    hits = [
        p.label == name(kind)
        for p, kind in zip(predictions, y, strict=True)
        if (kind >= KNOWN) == new
    ]
    return sum(hits) / len(hits)


@pytest.mark.parametrize("seed", range(3))
def test_new_labels_are_learned_and_known_ones_kept(seed: int) -> None:
    world = World(seed)
    x, y = world.draw(300)
    head = world.head()
    predictions = played(Adapter(head).stream(), x, y)
    alone = [
        int(head(row).argmax()) == kind for row, kind in zip(x, y, strict=True) if kind < KNOWN
    ]
    assert right(predictions, y, new=True) > 0.75
    assert right(predictions, y, new=False) > sum(alone) / len(alone) - 0.03


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_of_known_labels_loses_nothing(seed: int) -> None:
    world = World(seed)
    x, y = world.draw(200, KNOWN)
    head = world.head()
    predictions = played(Adapter(head).stream(), x, y)
    alone = torch.log_softmax(head(x), 1).detach()
    hits = (alone.argmax(1) == torch.tensor(y)).float().mean()
    assert right(predictions, y, new=False) > float(hits) - 0.015
    nats = [
        float(p.probs[kind].log() - alone[t, kind])
        for t, (p, kind) in enumerate(zip(predictions, y, strict=True))
    ]
    assert sum(nats[50:]) / 150 > -0.05


def test_an_unlike_input_is_not_the_last_label() -> None:
    world = World()
    head = world.head()
    stream = Adapter(head).stream()
    stream.predict(world.centres[KNOWN])
    stream.observe("dog")
    assert stream.predict(world.centres[KNOWN]).label == "dog"
    x, _ = world.draw(200, KNOWN)
    said = [stream.predict(row).label for row in x]
    assert said == head(x).argmax(1).tolist()


@pytest.mark.parametrize("inputs", [1e-3, 1e3])
def test_the_size_of_h_does_not_matter(inputs: float) -> None:
    world = World()
    x, y = world.draw(60)
    plain = played(Adapter(world.head()).stream(), x, y)
    scaled = played(Adapter(world.head(inputs=inputs)).stream(), inputs * x, y)
    for a, b in zip(plain, scaled, strict=True):
        assert torch.allclose(a.probs, b.probs, atol=2e-3)


@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_models_too_sure_or_too_shy(weight: float) -> None:
    world = World(1)
    x, y = world.draw(300)
    predictions = played(Adapter(world.head(weight)).stream(), x, y)
    assert right(predictions, y, new=True) > 0.7
    assert right(predictions, y, new=False) > 0.9


def test_vectors_far_from_the_origin_and_no_bias() -> None:
    world = World(2)
    x, y = world.draw(300)
    far = torch.cat([x, torch.full((len(x), 1), 30.0)], 1)
    head = nn.Linear(DIM + 1, KNOWN, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.cat([world.weight, world.bias[:, None] / 30], 1))
    predictions = played(Adapter(head).stream(), far, y)
    assert right(predictions, y, new=True) > 0.75
    assert right(predictions, y, new=False) > 0.9


def test_examples_of_training_help_from_the_first_step() -> None:
    gained = 0.0
    for seed in range(4):
        world = World(seed)
        taught, kinds = world.draw(200, KNOWN)
        x, y = world.draw(60)
        plain, primed = Adapter(world.head()), Adapter(world.head())
        primed.prime(taught, kinds)
        scores = []
        for adapter in (plain, primed):
            probs = played(adapter.stream(), x, y)
            hits = [p.label == name(kind) for p, kind in zip(probs, y, strict=True)]
            scores.append(sum(hits) / len(hits))
        gained += scores[1] - scores[0]
    assert gained > 0


def test_wrong_labels_do_not_ruin_it() -> None:
    world = World(3)
    x, y = world.draw(400)
    stream = Adapter(world.head()).stream()
    hits = 0
    for t, (row, kind) in enumerate(zip(x, y, strict=True)):
        hits += t >= 200 and stream.predict(row).label == name(kind)
        stream.predict(row)
        wrong = int(torch.randint(KNOWN, (1,), generator=world.generator))
        stream.observe(wrong if t % 5 == 0 else name(kind))
    assert hits / 200 > 0.85


def test_meanings_that_move_are_followed() -> None:
    world = World(4)
    x, y = world.draw(400, KNOWN)
    moved = [kind if t < 150 else (kind + 1) % KNOWN for t, kind in enumerate(y)]
    predictions = played(Adapter(world.head()).stream(), x, moved)
    assert right(predictions[250:], moved[250:], new=False) > 0.85
