"""Descent on the last layer against torch's own optimiser on a copy of the model."""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import Bare, Recurrent, Stateless, random_stream, run

from labelmem.baselines.sgd_head import SGDHead, SGDHeadOptions, coordinates
from labelmem.errors import ConfigError, InputError


def with_row(head: nn.Linear, row: Tensor) -> nn.Linear:
    """A larger layer: one more label, which starts at ``row`` and without bias."""
    larger = nn.Linear(head.in_features, head.out_features + 1, bias=head.bias is not None)
    larger = larger.to(head.weight)
    with torch.no_grad():
        larger.weight.copy_(torch.cat([head.weight, row[None]]))
        if head.bias is not None:
            larger.bias.copy_(torch.cat([head.bias, head.bias.new_zeros(1)]))
    return larger


def oracle(model: Any, x: Tensor, ys: list[Any], options: SGDHeadOptions) -> list[Tensor]:
    """One stream, one optimiser, one step after every label."""
    head = copy.deepcopy(model.head)
    scale = float(head.weight.detach().norm(dim=1).mean())
    labels: list[Any] = list(range(head.out_features))
    state = model.initial_state(1) if hasattr(model, "initial_state") else None
    answers = []
    for t, y in enumerate(ys):
        h, state = model.features(x[t][None], state)
        h = h.detach()
        answers.append(torch.softmax(head(h), dim=1)[0].detach())
        if y not in labels:
            labels.append(y)
            zero = options.init == "zero"
            head = with_row(head, torch.zeros_like(h[0]) if zero else scale * h[0] / h.norm())
        optimiser = torch.optim.SGD(head.parameters(), lr=options.lr)
        nn.functional.cross_entropy(head(h), torch.tensor([labels.index(y)])).backward()
        optimiser.step()
        optimiser.zero_grad()
    return answers


def assert_close(seen: list[Tensor], expected: list[Tensor], near: float) -> None:
    for p, wanted in zip(seen, expected, strict=True):
        torch.testing.assert_close(p.double(), wanted, atol=near, rtol=0)


@pytest.mark.parametrize("build", [Stateless, Recurrent, partial(Stateless, dim=40)])
@pytest.mark.parametrize("init", ["zero", "imprint"])
@pytest.mark.parametrize("lr", [0.05, 1.0])
def test_it_is_torchs_own_step(build: Any, init: Any, lr: float) -> None:
    # 25 labels over 5 or 40 dimensions: the basis is full after 5, or never.
    model, (x, ys) = build().double().eval(), random_stream(1, 25, range(4), ["new-1", "new-2"])
    options = SGDHeadOptions(lr=lr, init=init)
    probs = run(SGDHead(model, options=options).stream(), x, ys)
    assert_close(probs, oracle(model, x.double(), ys, options), 1e-10)


def test_single_precision_follows_over_a_long_stream() -> None:
    x, ys = random_stream(5, 400, range(4), ["new-1"])
    options = SGDHeadOptions(lr=0.2)
    probs = run(SGDHead(Stateless(), options=options).stream(), x, ys)
    assert_close(probs, oracle(Stateless().double().eval(), x.double(), ys, options), 1e-4)


def test_zero_and_repeated_inputs_are_no_trouble() -> None:
    model = Bare().double()
    x = torch.tensor([0.0, 1.0, 1.0, 2.0]).repeat(3)[:, None] * torch.tensor([1.0, 2.0, 3.0])
    ys = [0, 1, "new", 1, 0, "new", 2, 1, 0, 0, "new", 1]
    options = SGDHeadOptions(lr=0.3)
    stream = SGDHead(model, options=options).stream()
    assert_close(run(stream, x, ys), oracle(model, x.double(), ys, options), 1e-10)
    assert stream.tensors()["basis.0"].shape[1] == 1  # one direction was ever seen


def test_a_head_without_bias_stays_without() -> None:
    model = Bare().double()
    model.head = nn.Linear(3, 3, bias=False).double()
    x, ys = random_stream(1, 20, range(3), ["new"])
    options = SGDHeadOptions(lr=0.5)
    probs = run(SGDHead(model, options=options).stream(), x, ys)
    assert_close(probs, oracle(model, x.double(), ys, options), 1e-10)


def test_it_learns_what_the_model_does_not_know() -> None:
    x, ys = random_stream(0, 200, [0], ["one", "two"])
    model = Bare(labels=1)
    probs = run(SGDHead(model).stream(), x, ys)
    hits = [int(p.argmax()) == [0, "one", "two"].index(y) for p, y in zip(probs, ys, strict=True)]
    assert sum(hits[150:]) > 40


def test_coordinates_give_the_vector_back() -> None:
    generator = torch.Generator().manual_seed(0)
    basis = torch.zeros(2, 0, 6)
    for _ in range(20):
        h = torch.randn(2, 6, generator=generator) * torch.logspace(-3, 2, 6)
        basis, a = coordinates(basis, h)
        torch.testing.assert_close(torch.einsum("nk,nkd->nd", a, basis), h, atol=1e-4, rtol=1e-5)
    assert basis.shape[1] == 6
    torch.testing.assert_close(basis @ basis.mT, torch.eye(6).expand(2, 6, 6), atol=1e-5, rtol=0)


def test_weights_that_run_away_are_reported() -> None:
    stream = SGDHead(Bare(), options=SGDHeadOptions(lr=1e38)).stream()
    with pytest.raises(InputError, match="smaller lr"):
        run(stream, 1e3 * torch.ones(3, 3), [0, 1, 2])


@pytest.mark.parametrize("wrong", [{"lr": -1.0}, {"lr": math.nan}, {"init": "random"}])
def test_options_have_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SGDHeadOptions(**wrong)
