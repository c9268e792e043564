"""The head of frozen features is an ordinary logistic regression."""

from __future__ import annotations

import torch
from labelmem_paper.experiments.adapt.logistic import fit_logistic


def clusters(spread: float, n: int = 300, labels: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(labels, 8, generator=generator)
    y = torch.arange(n) % labels
    return centres[y] + spread * torch.randn(n, 8, generator=generator), y


def test_what_can_be_separated_is() -> None:
    h, y = clusters(spread=0.5)
    weight, bias = fit_logistic(h, y, labels=3, seed=0)
    assert weight.shape == (3, 8) and bias.shape == (3,)
    assert bool(((h @ weight.T + bias).argmax(1) == y).all())
    assert not weight.requires_grad and not bias.requires_grad


def test_what_says_nothing_gets_small_weights() -> None:
    h, y = clusters(spread=0.5)
    sure, _ = fit_logistic(h, y, labels=3, seed=0)
    shuffled = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(1))]
    unsure, _ = fit_logistic(h, shuffled, labels=3, seed=0)
    assert float(unsure.norm()) < float(sure.norm())


def test_the_same_seed_gives_the_same_head() -> None:
    h, y = clusters(spread=2.0)
    first, again = (fit_logistic(h, y, labels=3, seed=1)[0] for _ in range(2))
    assert torch.equal(first, again)
