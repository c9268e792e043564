"""Fused kernels before the memory against the specification; test_kernels.py says how they run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, Key, RecentTokens
from labelmem.models import GRUModel, HistoryModel
from labelmem.models.cells import gru_cell

pytest.importorskip("triton", reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
LABELS, N = 9, 4
kernel = pytest.mark.skipif(
    DEVICE == "cpu" and not INTERPRETED, reason="runs in the process that the first test starts"
)


@pytest.mark.skipif(DEVICE == "cuda" or INTERPRETED, reason="kernels run in this process")
def test_all_that_follows_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def tokens(seed: int) -> Tensor:
    """The start of a stream among them."""
    drawn = torch.randint(0, LABELS, (N,), generator=torch.Generator().manual_seed(seed))
    return drawn.index_fill(0, torch.tensor([seed % N]), LABELS).to(DEVICE)


@kernel
@pytest.mark.parametrize(("size", "dim"), [(64, 64), (5, 40), (7, 130)])
@torch.no_grad()
def test_cells_of_several_sizes(size: int, dim: int) -> None:
    g = torch.Generator().manual_seed(0)
    shapes = [(18, size), (18, dim), (3 * dim, size), (3 * dim, dim), (3 * dim,), (3 * dim,)]
    given = [0.3 * torch.randn(shape, generator=g).to(DEVICE) for shape in shapes]
    found = gru_cell(*given)
    with plainly():
        torch.testing.assert_close(found, gru_cell(*given), rtol=0, atol=1e-5)


@kernel
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (GRUModel, {"layers": 2}),
        (GRUModel, {"tied": True}),
        (HistoryModel, {}),
        (HistoryModel, {"prior": 1.0, "norm": 0.0}),
        (HistoryModel, {"recurrent": 3}),
    ],
    ids=["gru", "tied", "history", "prior", "recurrent"],
)
@torch.no_grad()
def test_models(kind: type[Any], options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = kind(LABELS, dim=6, **options).to(DEVICE).eval()
    for weight in model.parameters():
        weight.add_(torch.randn_like(weight))
    mine = theirs = model.initial_state(N)
    for step in range(3):
        logits, mine = model(tokens(step), mine)
        with plainly():
            expected, theirs = model(tokens(step), theirs)
        torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@kernel
@torch.no_grad()
def test_what_is_no_token_makes_nan() -> None:
    for model in (GRUModel(LABELS, dim=6), HistoryModel(LABELS, dim=6)):
        model.to(DEVICE).eval()
        x = torch.tensor([0, LABELS, LABELS + 1, -1], device=DEVICE)
        logits, _ = model(x, model.initial_state(N))
        assert logits.isfinite().all(dim=1).tolist() == [True, True, False, False]


@kernel
@pytest.mark.parametrize(
    "key",
    [
        RecentTokens(last=3, dim=6, fade=0.5, pair=True),
        RecentTokens(last=1, dim=5),
        Joined(RecentTokens(dim=8, pair=True), Hidden(0.3)),
    ],
    ids=["pair", "one", "joined"],
)
@torch.no_grad()
def test_keys(key: Key) -> None:
    mine = theirs = key.initial_state(N, torch.device(DEVICE))
    for step in range(3):
        h = torch.randn(N, 7, generator=torch.Generator().manual_seed(step)).to(DEVICE)
        h[step] = 0.0
        found, mine = key(tokens(step), h, mine)
        with plainly():
            expected, theirs = key(tokens(step), h, theirs)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(mine, theirs)
