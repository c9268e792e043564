"""Nearest class mean against loops over lists of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from toys import Recurrent, Stateless, random_stream, run

from labelmem.baselines.ncm import NCM, NCMOptions
from labelmem.errors import ConfigError

OPTIONS = [
    NCMOptions(),
    NCMOptions(temperature=7.0, prior=2.0),
    NCMOptions(metric="cosine", temperature=4.0),
    NCMOptions(metric="cosine", prior=0.5),
    NCMOptions(frequency=1.5, prior=0.5),
    NCMOptions(theta=0.7),
    NCMOptions(metric="cosine", theta=0.3, frequency=1.0, temperature=2.0),
]


def closeness(h: Any, mean: Any, options: NCMOptions) -> float:
    if options.metric == "cosine":
        cos = float(h @ mean) / (np.linalg.norm(h) * np.linalg.norm(mean))
        return options.temperature * cos
    return -options.temperature * float(((h - mean) ** 2).sum()) / len(h)


def oracle(
    hs: Any, ys: list[Any], labels: list[Any], taught: dict[Any, list[Any]], options: NCMOptions
) -> list[list[float]]:
    """Probabilities over the known labels and the stream's own, step by step."""
    count = {y: min(len(v), options.prior or math.inf) for y, v in taught.items()}
    sums = {y: count[y] * np.mean(v, axis=0) for y, v in taught.items()}
    labels, answers = list(labels), []
    for h, y in zip(hs, ys, strict=True):
        e = [
            count[k] ** options.frequency * math.exp(closeness(h, sums[k] / count[k], options))
            if k in sums
            else 0.0
            for k in labels
        ]
        answers.append([v / sum(e) if any(e) else 0.0 for v in e])
        sums[y], count[y] = sums.get(y, 0.0) + h, count.get(y, 0.0) + 1
        labels += [y] if y not in labels else []
    return answers


@pytest.mark.parametrize("options", OPTIONS)
def test_means_continue_from_training(options: NCMOptions) -> None:
    model = Stateless().double().eval()
    x, ys = random_stream(0, 40, range(4), ["new-1", "new-2"])
    training = [(x[:7].double(), [0, 1, 1, 3, 3, 3, 3]), (x[7:9].double(), [0, "unheard"])]
    taught: dict[Any, list[Any]] = {}
    for seen, labels in training:
        for h, y in zip(model.features(seen)[0].detach().numpy(), labels, strict=True):
            if y != "unheard":
                taught.setdefault(y, []).append(h)
    method = NCM(model, options=options).fit(training, batch_size=2)
    hs = model.features(x.double())[0].detach().numpy()
    rs = torch.softmax(model(x.double()), dim=1).tolist()
    expected = oracle(hs, ys, [0, 1, 2, 3], taught, options)
    for seen, s, r in zip(run(method.stream(), x, ys), expected, rs, strict=True):
        r += [0.0] * (len(s) - len(r))
        wanted = [(1 - options.theta) * b + options.theta * a for a, b in zip(s, r, strict=True)]
        assert seen.tolist() == pytest.approx(wanted, abs=1e-10)


def test_below_one_theta_leaves_the_model_where_there_is_no_mean() -> None:
    model, (x, ys) = Stateless().eval(), random_stream(0, 5, range(4))
    stream = NCM(model, options=NCMOptions(theta=0.9)).stream()
    torch.testing.assert_close(stream.predict(x[0]).probs, torch.softmax(model(x[:1]), 1)[0])
    for p in run(stream, x, ys):
        assert bool((p > 0).all())
        assert float(p.sum()) == pytest.approx(1)


def test_without_training_it_starts_from_the_first_label() -> None:
    x, ys = random_stream(1, 30, ["p"], ["q", "r"])
    probs = run(NCM(nn.Identity(), labels=()).stream(), x, ys)
    expected = oracle(x.double().numpy(), ys, [], {}, NCMOptions())
    for seen, wanted in zip(probs, expected, strict=True):
        assert seen.tolist() == pytest.approx(wanted, abs=1e-5)


def test_h_of_a_recurrent_model_is_that_of_its_place_in_the_stream() -> None:
    model, (x, ys) = Recurrent(), random_stream(0, 6, range(4))
    method = NCM(model).fit([(x, ys), (x[:3], ys[:3])])
    assert method.means is not None
    state, hs = model.initial_state(1), []
    for t in range(6):
        h, state = model.features(x[t][None], state)
        hs.append(h[0].detach())
    for label in range(4):
        own = [h for h, y in zip(hs, ys, strict=True) if y == label]
        own += [h for h, y in zip(hs[:3], ys[:3], strict=True) if y == label]
        assert method.means.count[label] == len(own)
        if own:
            torch.testing.assert_close(method.means.mean[label], torch.stack(own).mean(dim=0))


def test_two_clusters_are_told_apart_after_one_example_each() -> None:
    stream = NCM(nn.Identity(), labels=()).stream()
    run(stream, torch.tensor([[0.0, 0.0], [9.0, 9.0]]), ["here", "there"])
    assert stream.predict([1.0, 2.0]).label == "here"
    assert stream.predict([8.0, 6.0]).label == "there"


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "taxi"},
        {"temperature": 0.0},
        {"prior": 0.0},
        {"frequency": -1.0},
        {"theta": 1.1},
    ],
)
def test_options_have_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        NCMOptions(**wrong)
