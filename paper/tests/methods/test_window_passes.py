"""Passes over a window: padded to one shape, and recorded, they say what the plain one says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from labelmem_paper.methods.dntm import DNTM, DNTMOptions
from labelmem_paper.methods.maml import MAML, MAMLOptions
from labelmem_paper.methods.rei import Rei, ReiOptions
from labelmem_paper.methods.window_passes import (
    UNSCORED,
    PaddedPass,
    PlainPass,
    RecordedPass,
    window_pass,
)
from labelmem_paper.methods.windows import fit_windows
from torch import Tensor

from labelmem.fast import plainly
from labelmem.models import FitOptions
from labelmem.trees import leaves

LABELS = 6


def learner(name: str, device: str = "cpu") -> Any:
    if name == "dntm":
        made = DNTMOptions(dim=5, cells=3, content=2, address=2)
        return DNTM(LABELS, made, device)
    if name == "rei":
        return Rei(LABELS, ReiOptions(dim=5, vector=3, lr=0.5, decay=0.1), device)
    return MAML(LABELS, MAMLOptions(dim=4, lr=0.3), device)


def labels(rows: int, steps: int, seed: int) -> Tensor:
    y = torch.randint(LABELS, (rows, steps), generator=torch.Generator().manual_seed(seed))
    y[0, -1] = UNSCORED
    return y


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["dntm", "rei", "maml"])
def test_padding_changes_nothing(name: str, training: bool) -> None:
    made = learner(name)
    plain = PlainPass(made, training)
    padded = PaddedPass(made, streams=5, window=4, training=training)
    # A window that fills the shape comes first: what it leaves in the buffers must not be seen.
    for rows, steps in ((5, 4), (3, 4), (2, 1)):
        y, state = labels(rows, steps, rows), made.begin(rows)
        tokens = torch.randint(LABELS + 1, y.shape)
        outcomes = []
        for one in (plain, padded):
            total, after = one(tokens, y, state, 7)
            slopes = [p.grad for p in made.network.parameters() if p.grad is not None]
            assert bool(slopes) is training
            state_after = leaves(after) if steps == 4 else ()
            outcomes.append([total, *state_after, *(s.clone() for s in slopes)])
        assert not any(leaf.requires_grad for leaf in outcomes[1])
        for a, b in zip(*outcomes, strict=True):
            torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6)


def test_the_slope_is_that_of_the_mean() -> None:
    made = learner("dntm")
    y = labels(2, 3, 0)
    tokens = torch.zeros_like(y)
    total, _ = made.window(tokens, y, made.begin(2))
    expected = torch.autograd.grad(total / 5, made.network.key.weight)[0]
    PlainPass(made, training=True)(tokens, y, made.begin(2), 5)
    torch.testing.assert_close(made.network.key.weight.grad, expected)


def test_a_cpu_records_nothing() -> None:
    assert isinstance(window_pass(learner("rei"), 2, 3, training=True), PlainPass)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA: this records a graph")
@pytest.mark.parametrize("name", ["dntm", "rei", "maml"])
def test_a_recorded_training_ends_as_a_plain_one(name: str) -> None:
    data = [labels(1, n, n)[0, :-1] for n in (9, 8, 7, 4, 3)]
    options = FitOptions(epochs=3, batch=2, window=3, lr=0.01)
    trained = []
    for _ in range(2):
        made = learner(name, "cuda")
        assert isinstance(window_pass(made, 2, 3, training=True), RecordedPass)
        if trained:
            with plainly():
                result = fit_windows(made, data, data, options)
        else:
            result = fit_windows(made, data, data, options)
        trained.append((result, made.network.state_dict()))
    (recorded, weights), (plain, expected) = trained
    for a, b in zip(recorded.history, plain.history, strict=True):
        assert a["validation"] == pytest.approx(b["validation"], rel=1e-4)
    for key, value in expected.items():
        torch.testing.assert_close(weights[key], value, rtol=1e-3, atol=1e-4)
