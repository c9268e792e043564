"""Descent on all weights against torch's own optimiser on a copy of the model."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import Recurrent, Stateless, filled, random_stream, run

from labelmem.baselines import sgd_all as module
from labelmem.baselines.sgd_all import SGDAll, SGDAllOptions
from labelmem.errors import ClosedError, ConfigError, InputError
from labelmem.models import ConvNet, GRUModel


def grown(model: Any) -> None:
    """One more label in the last layer, a row of zeros."""
    old = model.head
    model.head = nn.Linear(old.in_features, old.out_features + 1).to(old.weight)
    with torch.no_grad():
        model.head.weight.zero_()[:-1] = old.weight
        model.head.bias.zero_()[:-1] = old.bias


def oracle(model: Any, x: Tensor, ys: list[Any], options: SGDAllOptions) -> list[Tensor]:
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    model = copy.deepcopy(model)
    labels: list[Any] = list(range(model.head.out_features))
    state = model.initial_state(1) if hasattr(model, "initial_state") else None
    answers = []
    for t, y in enumerate(ys):
        given = (x[t][None],) if state is None else (x[t][None], state)
        with torch.no_grad():
            output = model(*given)
            logits, after = (output, None) if state is None else output
            answers.append(torch.softmax(logits, dim=1)[0])
        if y not in labels:
            labels.append(y)
            grown(model)
        optimiser = torch.optim.SGD(model.parameters(), lr=options.lr)
        optimiser.zero_grad()
        output = model(*given)
        logits = output if state is None else output[0]
        nn.functional.cross_entropy(logits, torch.tensor([labels.index(y)])).backward()
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimiser.step()
        with torch.no_grad():
            for name, p in model.named_parameters():
                origin = torch.zeros_like(p)
                origin[: len(start[name])] = start[name]
                p -= options.decay * (before[name] - origin)
        state = after
    return answers


def assert_follows(model: Any, x: Tensor, ys: list[Any], options: SGDAllOptions) -> None:
    model = model.double().eval()
    x = x.double() if x.is_floating_point() else x
    probs = run(SGDAll(model, options=options).stream(), x, ys)
    for seen, wanted in zip(probs, oracle(model, x, ys, options), strict=True):
        torch.testing.assert_close(seen, wanted, atol=1e-10, rtol=0)


@pytest.mark.parametrize("options", [SGDAllOptions(lr=0.1), SGDAllOptions(lr=0.5, decay=0.2)])
@pytest.mark.parametrize("build", [Stateless, Recurrent])
def test_it_is_torchs_own_step(build: Any, options: SGDAllOptions) -> None:
    assert_follows(build(), *random_stream(1, 12, range(4), ["new-1", "new-2"]), options)


@pytest.mark.parametrize("tied", [False, True])
def test_the_packages_own_models_can_wear_it(tied: bool) -> None:
    model = GRUModel(labels=5, dim=4, tied=tied)
    generator = torch.Generator().manual_seed(0)
    ys = torch.randint(5, (12,), generator=generator)
    x = torch.cat([torch.tensor([model.start_token]), ys[:-1]])
    assert_follows(model, x, ys.tolist(), SGDAllOptions(lr=0.3))


class Fused(nn.Module):
    """A model that tests how many streams it is given, which vmap does not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        if float(x.sum()) == 123.0:  # a value, so no batch of values
            raise ValueError("unlucky")
        return self.head(x)


def test_where_vmap_fails_streams_go_one_by_one() -> None:
    model, (x, ys) = Fused(), random_stream(0, 8, range(2), ["new"])
    method = SGDAll(model)
    batch, alone = method.streams(2), method.stream()
    for t, y in enumerate(ys):
        probs = batch.predict(torch.stack([x[t], x[t] + 1]))
        torch.testing.assert_close(probs[0], alone.predict(x[t]).probs)
        batch.observe([y, 0])
        alone.observe(y)


def test_an_input_the_model_cannot_take_is_refused() -> None:
    for method in (SGDAll(Fused()), SGDAll(Stateless())):
        with pytest.raises(InputError, match="cannot take this input"):
            method.stream().predict(torch.zeros(7))
        with pytest.raises(InputError, match="cannot take this input"):
            method.streams(2).predict(torch.zeros(2, 7))
        assert len(method.streams(2).predict(torch.zeros(2, 3))) == 2


def test_weights_that_run_away_are_reported() -> None:
    stream = SGDAll(Stateless(), options=SGDAllOptions(lr=1e38)).stream()
    with pytest.raises(InputError, match="smaller lr"):
        run(stream, torch.ones(3, 3), [0, 1, 2])


def test_the_model_can_be_copied_while_it_is_worn() -> None:
    model = Stateless()
    batch = SGDAll(model).streams(2)
    batch.predict(torch.ones(2, 3))
    batch.observe([0, 1])
    copy.deepcopy(model)  # nothing of a finished transform hangs on it


def test_dropout_stays_off_and_closing_is_final() -> None:
    model = Stateless()
    method = SGDAll(model)
    stream = method.stream()
    before = stream.predict(torch.ones(3)).probs
    model.train()
    assert torch.equal(stream.predict(torch.ones(3)).probs, before)
    method.close()
    with pytest.raises(ClosedError):
        stream.predict(torch.ones(3))


def test_streams_taken_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    x, ys = torch.randn(6, 5, 3, generator=generator), torch.randint(4, (6, 5), generator=generator)
    probs = []
    for most in (module._MOST_ON_CPU, 1):  # all streams at once, then each by itself
        monkeypatch.setattr(module, "_MOST_ON_CPU", most)
        batch = SGDAll(Stateless(), options=SGDAllOptions(lr=0.5, decay=0.1)).streams(5)
        for t in range(6):
            probs.append(batch.predict(x[t]))
            batch.observe(ys[t], mask=ys[t] > 0)
    for whole, parts in zip(probs[:6], probs[6:], strict=True):
        torch.testing.assert_close(whole, parts)


def test_the_model_keeps_its_weights() -> None:
    model, (x, ys) = Stateless(), random_stream(0, 5, range(4))
    before = copy.deepcopy(model.state_dict())
    for streams in (1, 2):  # one stream alone could take the model's weights for its own
        batch = SGDAll(model, options=SGDAllOptions(lr=0.5)).streams(streams)
        for t in range(5):
            batch.predict(x[t].expand(streams, -1))
            batch.observe([ys[t]] * streams)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_first_weights_are_shared_not_copied() -> None:
    method = SGDAll(Stateless())
    state = method.initial_state(1000)
    assert state.weights["head.weight"].untyped_storage().nbytes() == 4 * 4 * 5


def test_it_learns_what_the_model_does_not_know() -> None:
    x, ys = random_stream(0, 150, [0], ["one"])
    probs = run(SGDAll(Stateless(labels=1), options=SGDAllOptions(lr=0.2)).stream(), x, ys)
    hits = [int(p.argmax()) == [0, "one"].index(y) for p, y in zip(probs, ys, strict=True)]
    assert sum(hits[100:]) > 35


@pytest.mark.parametrize("wrong", [{"lr": -1.0}, {"lr": math.inf}, {"decay": 1.0}])
def test_options_have_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SGDAllOptions(**wrong)


def pictured(bias: bool = True) -> nn.Sequential:
    net = ConvNet(labels=4, dim=5, size=6, channels=(2, 3), gain=2.0)
    model: nn.Sequential = filled(nn.Sequential(net.body, nn.Linear(5, 4, bias=bias)), 0, 0.4)
    return model.double()


def passes_of(model: nn.Module) -> list[Any]:
    """One entry for each time that the model runs, for however many streams at once."""
    passes: list[Any] = []
    model.register_forward_pre_hook(lambda _, given: passes.append(given))
    return passes


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_streams_together_are_streams_alone(bias: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(6, 3, 1, 6, 6, generator=generator, dtype=torch.float64)
    ys = torch.randint(6, (6, 3), generator=generator)  # two of the labels are new
    options, model = SGDAllOptions(lr=0.3, decay=0.1), pictured(bias)
    passes = passes_of(model)
    together = SGDAll(model, options=options).streams(3)
    alone = [SGDAll(pictured(bias), options=options).streams(1) for _ in range(3)]
    for t in range(6):
        probs = together.predict(x[t])
        for i, stream in enumerate(alone):
            expected = stream.predict(x[t, i : i + 1])
            width = min(probs.shape[1], expected.shape[1])
            torch.testing.assert_close(probs[i : i + 1, :width], expected[:, :width])
            assert not probs[i, width:].any()
            stream.observe_ids(ys[t, i : i + 1])
        together.observe_ids(ys[t])
    assert len(passes) == 2 * 6


def test_streams_of_a_model_without_a_state_are_batched() -> None:
    model = Stateless()
    passes, batch = passes_of(model), SGDAll(model).streams(2)
    batch.predict(torch.ones(2, 3))
    batch.observe([0, 1])
    assert len(passes) == 2


def test_pictures_of_another_size_are_refused() -> None:
    method = SGDAll(pictured())
    for shape in ((2, 1, 7, 7, 7), (2, 2, 6, 6), (2, 1, 9, 9)):
        with pytest.raises(InputError, match="cannot take this input"):
            method.streams(2).predict(torch.zeros(shape, dtype=torch.float64))
    assert len(method.streams(2).predict(torch.zeros(2, 1, 6, 6, dtype=torch.float64))) == 2
