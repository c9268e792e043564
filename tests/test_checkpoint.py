from __future__ import annotations

from pathlib import Path

import pytest
import torch

from labelmem.checkpoint import Checkpoint
from labelmem.errors import MismatchError


def begun(identity: str = "a") -> Checkpoint:
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.fill_(1.0)
        module.bias.zero_()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.1)
    return Checkpoint.begin(module, optimiser, {"name": identity})


def step(checkpoint: Checkpoint) -> None:
    checkpoint.optimiser.zero_grad()
    checkpoint.module(torch.tensor([[1.0, 2.0]])).sum().backward()
    checkpoint.optimiser.step()


def test_the_best_weights_come_back() -> None:
    checkpoint = begun()
    checkpoint.record(1.0)
    step(checkpoint)
    checkpoint.record(0.5)
    best = checkpoint.module.weight.detach().clone()
    step(checkpoint)
    checkpoint.record(0.7)
    checkpoint.restore_best()
    assert torch.equal(checkpoint.module.weight, best)


def test_a_loaded_checkpoint_goes_on_bit_for_bit(tmp_path: Path) -> None:
    straight = begun()
    for loss in (1.0, 0.9):
        straight.record(loss)
        step(straight)
    straight.save(tmp_path / "x")
    resumed = begun()
    resumed.load(tmp_path / "x")
    for checkpoint in (straight, resumed):
        step(checkpoint)
        step(checkpoint)
    assert torch.equal(straight.module.weight, resumed.module.weight)
    assert resumed.losses == [1.0, 0.9]


def test_another_identity_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    begun("a").save(tmp_path / "x")
    other = begun("b")
    step(other)
    held = other.module.weight.detach().clone()
    with pytest.raises(MismatchError, match="remove it to start anew"):
        other.load(tmp_path / "x")
    assert torch.equal(other.module.weight, held)
