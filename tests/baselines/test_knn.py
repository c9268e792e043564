"""Nearest neighbours against a sorted list."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from toys import Stateless, random_stream, run

from labelmem.baselines.knn import KNN, KNNOptions
from labelmem.errors import ConfigError


def votes(h: Any, stored: list[tuple[Any, Any]], options: KNNOptions) -> dict[Any, float]:
    stored = stored[-options.capacity :] if options.capacity else stored
    cosines = [(float(h @ v) / (np.linalg.norm(h) * np.linalg.norm(v)), y) for v, y in stored]
    cosines.sort(key=lambda pair: -pair[0])
    nearest = cosines[: options.neighbours]
    weights = [(math.exp(options.sharpness * cos), y) for cos, y in nearest]
    total, shares = sum(w for w, _ in weights), {}
    for w, y in weights:
        shares[y] = shares.get(y, 0.0) + w / total
    return shares


@pytest.mark.parametrize(
    "options",
    [
        KNNOptions(),
        KNNOptions(theta=0.8, neighbours=3, sharpness=2.0),
        KNNOptions(neighbours=None),
        KNNOptions(neighbours=4, capacity=7),
        KNNOptions(theta=1.0, neighbours=1),
    ],
)
def test_it_votes_as_the_list_does(options: KNNOptions) -> None:
    model, (x, ys) = Stateless().eval(), random_stream(2, 60, range(4), ["new-1", "new-2"])
    hs = model.features(x)[0].detach().double().numpy()
    r = torch.softmax(model(x), dim=1).tolist()
    stream = KNN(model, options=options).stream()
    for t in range(60):
        p = stream.predict(x[t])
        theta = options.theta if t else 0.0
        shares = votes(hs[t], list(zip(hs[:t], ys[:t], strict=True)), options)
        for i, label in enumerate(p.labels):
            model_part = r[t][i] if i < 4 else 0.0
            expected = (1 - theta) * model_part + theta * shares.get(label, 0.0)
            assert float(p.probs[i]) == pytest.approx(expected, abs=1e-5)
        stream.observe(ys[t])


def test_few_shot_remembers_what_it_saw() -> None:
    x = torch.eye(3)
    stream = KNN(nn.Identity(), labels=(), options=KNNOptions(neighbours=1)).stream()
    assert len(stream.predict(x[0]).probs) == 0
    run(stream, x, ["x", "y", "z"])
    assert [stream.predict(row).label for row in x] == ["x", "y", "z"]


def test_the_oldest_pair_goes_first() -> None:
    options = KNNOptions(neighbours=1, capacity=2)
    stream = KNN(nn.Identity(), labels=(), options=options).stream()
    run(stream, torch.eye(3), ["x", "y", "z"])
    assert stream.predict([1.0, 0.1, 0.0]).label == "y"  # x is gone, y is nearest of the rest


@pytest.mark.parametrize(
    "wrong", [{"theta": -0.1}, {"neighbours": 0}, {"sharpness": -1.0}, {"capacity": 0}]
)
def test_options_have_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        KNNOptions(**wrong)
