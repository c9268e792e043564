"""A user of the default form against the slow oracle, step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labelmem.logit_memory import LogitMemoryOptions
from labelmem.logit_memory.user import User
from logit_memory.oracle import Oracle

STEPS = 60


def stream(
    known: int, new: int, dim: int, seed: int, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Keys about the centres of their labels, a head that knows the first, and labels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(known + new, dim)) * 1.5
    met: dict[int, int] = {}
    x, y = [], []
    for kind in rng.integers(known + new, size=STEPS).tolist():
        x.append(centres[kind] + rng.normal(size=dim))
        shown = int(rng.integers(known)) if rng.random() < noise else kind
        y.append(shown if shown < known else met.setdefault(shown, known + len(met)))
    return np.array(x), centres[:known], y


def compare(options: LogitMemoryOptions, x: np.ndarray, W: np.ndarray, y: list[int]) -> None:
    oracle = Oracle(len(W), options)
    user = User(len(W), x.shape[1], options, torch.zeros(1, dtype=torch.float64))
    width = len(W)
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        expected = oracle.predict(row, W @ row)
        logits = torch.from_numpy(W @ row)[None]
        belief = user.believe(torch.from_numpy(row)[None], logits, width)
        assert belief.probs.numpy() == pytest.approx(expected, abs=1e-6), f"step {t}"
        oracle.observe(label)
        user.observe(belief, label)
        width = max(width, label + 1)
        assert user.weights.theta.numpy() == pytest.approx(oracle.theta, abs=1e-5), f"step {t}"
        cautions = user.caution.towards(torch.tensor([True, False])).tolist()
        assert cautions == pytest.approx([oracle.to_new, oracle.to_known], abs=1e-5), f"step {t}"
        assert user.noise == pytest.approx(oracle.noise, abs=1e-6), f"step {t}"
    assert len(user.cells) == len(oracle.cells)


@pytest.mark.parametrize("seed", range(4))
def test_known_and_new_labels(seed: int) -> None:
    x, W, y = stream(4, 3, dim=5, seed=seed)
    compare(LogitMemoryOptions(), x, W, y)


def test_known_labels_alone() -> None:
    x, W, y = stream(6, 0, dim=3, seed=5)
    compare(LogitMemoryOptions(), x, W, y)


def test_wrong_labels() -> None:
    x, W, y = stream(5, 2, dim=4, seed=6, noise=0.3)
    compare(LogitMemoryOptions(), x, W, y)


def test_a_full_memory() -> None:
    x, W, y = stream(3, 3, dim=4, seed=7)
    compare(LogitMemoryOptions(capacity=7, revisits=2, votes=3), x, W, y)


def test_an_overconfident_model() -> None:
    x, W, y = stream(4, 2, dim=4, seed=8)
    compare(LogitMemoryOptions(), x, 8 * W, y)
