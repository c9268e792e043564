"""Streaming LDA equals LDA in closed form, whatever the order in which the vectors came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from toys import Bare, random_stream, run

from labelmem.baselines.slda import SLDA, SLDAOptions
from labelmem.errors import ConfigError


def posterior(h: Any, groups: dict[Any, list[Any]], covariance: Any) -> dict[Any, float]:
    """Of Gaussian classes with equal priors and one covariance, from the densities themselves."""
    precision = np.linalg.inv(covariance)
    e = {}
    for label, vectors in groups.items():
        off = h - np.mean(vectors, axis=0)
        e[label] = float(np.exp(-off @ precision @ off / 2))
    total = sum(e.values())
    return {label: v / total for label, v in e.items()}


def scatter(groups: dict[Any, list[Any]]) -> Any:
    """Products of the differences from the class means, summed over all vectors."""
    total = 0.0
    for vectors in groups.values():
        mean = np.mean(vectors, axis=0)
        for v in vectors:
            total = total + np.outer(v - mean, v - mean)
    return total


def grouped(hs: Any, ys: list[Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for h, y in zip(hs, ys, strict=True):
        groups.setdefault(y, []).append(h)
    return groups


def test_it_equals_the_closed_form_without_training() -> None:
    x, ys = random_stream(0, 120, ["a"], ["b", "c", "d"], inputs=5)
    hs = x.double().numpy()
    for t, p in enumerate(run(SLDA(nn.Identity(), labels=()).stream(), x, ys)):
        if t < 2:
            continue
        groups = grouped(hs[:t], ys[:t])
        covariance = (np.eye(5) + scatter(groups)) / (1 + t)
        expected = list(posterior(hs[t], groups, covariance).values())
        assert p.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("shrinkage", [1e-3, 0.3, 1.0])
def test_it_equals_the_closed_form_after_training(shrinkage: float) -> None:
    x, ys = random_stream(4, 80, range(3), ["new"], inputs=3)
    taught = [(x[:20], ys[:20]), (x[20:40], ys[20:40])]
    known_only = [(h, y) for h, y in zip(x[:40], ys[:40], strict=True) if y in range(3)]
    before = grouped([h.double().numpy() for h, _ in known_only], [y for _, y in known_only])
    within, n = scatter(before), len(known_only)
    start = (1 - shrinkage) * within + shrinkage * np.trace(within) / 3 * np.eye(3)
    method = SLDA(Bare(), options=SLDAOptions(shrinkage=shrinkage)).fit(taught, batch_size=7)
    stream, hs = method.stream(), x.double().numpy()
    for t in range(40, 80):
        groups = {y: [*vs] for y, vs in before.items()}
        for h, y in zip(hs[40:t], ys[40:t], strict=True):
            groups.setdefault(y, []).append(h)
        covariance = (start - within + scatter(groups)) / (n + t - 40)
        expected, p = posterior(hs[t], groups, covariance), stream.predict(x[t])
        wanted = [expected.get(label, 0.0) for label in p.labels]
        assert p.probs.tolist() == pytest.approx(wanted, abs=1e-6)
        stream.observe(ys[t])


def test_frequencies_and_the_model_take_part_as_much_as_they_are_told() -> None:
    x, ys = random_stream(4, 60, range(3), ["new"], inputs=3)
    options = SLDAOptions(frequency=1.3, theta=0.6, temperature=0.5)
    method = SLDA(Bare(), options=options).fit([(x[:20], ys[:20])])
    plain = method.variant(frequency=0.0, theta=1.0)
    stream, other = method.stream(), plain.stream()
    count = [float(ys[:20].count(label)) for label in range(3)]
    for t in range(20, 60):
        p, s = stream.predict(x[t]), other.predict(x[t]).probs.double()
        own = [count[i] if i < 3 else ys[20:t].count("new") for i in range(len(s))]
        s = s * torch.tensor(own).double() ** 1.3
        assert p.model_probs is not None
        expected = 0.4 * p.model_probs.double() + 0.6 * s / s.sum()
        torch.testing.assert_close(p.probs.double(), expected, atol=1e-6, rtol=1e-5)
        for one in (stream, other):
            one.observe(ys[t])
        if ys[t] in range(3):
            count[ys[t]] += 1


def test_the_inverse_stays_accurate_over_a_long_stream() -> None:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(8, 8, generator=generator) * torch.logspace(-2, 1, 8)
    x = torch.randn(1500, 8, generator=generator) @ mixing
    ys = torch.randint(3, (1500,), generator=generator).tolist()
    stream = SLDA(nn.Identity(), labels=()).stream()
    run(stream, x, ys)
    groups = grouped(x.double().numpy(), ys)
    exact = np.linalg.inv(np.eye(8) + scatter(groups))
    inverse = stream.tensors()["inverse.0"][0].numpy()
    assert np.abs(inverse - exact).max() < 1e-8 * np.abs(exact).max()


def test_a_prior_makes_means_move_faster() -> None:
    training = [(torch.zeros(100, 3), [0] * 100), (torch.ones(100, 3), [1] * 100)]
    far = {}
    for prior in (None, 1.0):
        method = SLDA(Bare(labels=2), options=SLDAOptions(prior=prior)).fit(training)
        stream = method.stream()
        run(stream, 5 * torch.ones(3, 3), [0, 0, 0])
        far[prior] = float(stream.predict(5 * torch.ones(3)).probs[0])
    assert far[None] < 0.5 < far[1.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"shrinkage": 0.0},
        {"shrinkage": 1.5},
        {"temperature": -1.0},
        {"prior": 0.0},
        {"frequency": -0.1},
        {"theta": -0.1},
    ],
)
def test_options_have_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SLDAOptions(**wrong)
