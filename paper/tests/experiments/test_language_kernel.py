"""Many steps of cells in one kernel against the steps one by one; see ``tests/kernels``."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from labelmem_paper.experiments.language import cells as cells_module
from labelmem_paper.experiments.language import cells_kernel
from labelmem_paper.experiments.language.answer import Answer
from labelmem_paper.experiments.language.cells import Cells
from labelmem_paper.experiments.language.pieces import Piece

from labelmem import MemoryConfig
from labelmem.fast import plainly

pytest.importorskip("triton", reason="Triton is not installed")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WORDS, DIM = 60, 24


# Triton asks for its interpreter when it is imported, so a CPU needs a process that begins with it.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
kernel = pytest.mark.skipif(
    DEVICE.type == "cpu" and not INTERPRETED,
    reason="runs in the process that the first test starts",
)


@pytest.mark.skipif(DEVICE.type == "cuda" or INTERPRETED, reason="kernels run in this process")
def test_all_that_follows_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def piece(streams: int, steps: int, seed: int) -> Piece:
    """Few words come often; h tells a little about the word, and so does the model."""
    generator = torch.Generator().manual_seed(seed)
    shape = (streams, steps)
    few, any_word = (torch.randint(many, shape, generator=generator) for many in (9, WORDS))
    y = torch.where(torch.rand(shape, generator=generator) < 0.7, few, any_word)
    about = torch.randn(WORDS, DIM, generator=torch.Generator().manual_seed(0))
    h = torch.randn(*shape, DIM, generator=generator) + 0.5 * about[y]
    h[:, ::17] = 0.0
    logits = 2 * torch.randn(*shape, WORDS, generator=generator)
    logits.scatter_add_(2, y[..., None], 4 * torch.rand(*shape, 1, generator=generator))
    log_r = torch.log_softmax(logits, 2)
    y, h, log_r = (x.to(DEVICE) for x in (y, h, log_r))
    return Piece(y, y, h, log_r, 0)


def compare(config: MemoryConfig, pieces: list[Piece]) -> Cells:
    """Read all pieces in one kernel each and step by step; what is said and kept must agree."""
    streams, theta = len(pieces[0].y), 0.2
    fused, plain = (Cells(config, theta, streams, DIM, DEVICE, record=way) for way in (None, False))
    for one in pieces:
        mine, theirs = fused.run(one), plain.run(one)
        assert torch.equal(mine.words, theirs.words)
        torch.testing.assert_close(mine.s, theirs.s, rtol=0, atol=1e-5)
        log_p = [Answer(one.y, one.log_r, said).nats() for said in (mine, theirs)]
        torch.testing.assert_close(*log_p, rtol=0, atol=1e-4)
    for name in ("v", "inverse", "alpha", "prior", "label", "written"):
        mine, theirs = (getattr(cells, name)[:, :-1] for cells in (fused, plain))
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5, msg=name)
    assert int(fused.time) == int(plain.time)
    return fused


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each piece that went to the kernel, whether it took the steps."""
    seen, take_steps = [], cells_kernel.take_steps

    def told(*given: Any) -> Any:
        found = take_steps(*given)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(cells_kernel, "take_steps", told)
    return seen


@kernel
@pytest.mark.parametrize(
    ("streams", "capacity", "margin"),
    [(1, 5, -1.0), (1, 20, 0.5), (3, 7, 8.0), (2, 1, 0.0), (1, 100, 1.0)],
    ids=["negative margin", "some evicted", "all written", "one cell", "free cells"],
)
def test_a_kernel_takes_the_steps(
    streams: int, capacity: int, margin: float, taken: list[bool]
) -> None:
    config = MemoryConfig(lam=8.0, delta=0.7, margin=margin, capacity=capacity, decay=0.9)
    cells = compare(config, [piece(streams, steps, seed=steps) for steps in (40, 13)])
    assert taken == [True, True]
    assert (cells.label[:, :-1] >= 0).any() and int(cells.time) == 53


@kernel
def test_long_pieces_are_read_in_parts(monkeypatch: pytest.MonkeyPatch, taken: list[bool]) -> None:
    monkeypatch.setattr(cells_module, "AT_ONCE", 34)
    compare(MemoryConfig(lam=8.0, margin=0.5, capacity=5), [piece(2, 40, seed=1)])
    assert taken == [True, True, True]


@kernel
def test_a_cell_that_vanishes_is_left_to_the_steps(taken: list[bool]) -> None:
    one = piece(1, 12, seed=3)
    h = one.h.clone()
    h[:, 6] = -0.999 * h[:, :6].sum(1)  # next to nothing is left in the cell of word 0
    opposite = replace(one, y=torch.zeros_like(one.y), h=h)
    cells = compare(MemoryConfig(lam=8.0, margin=60.0, capacity=3), [opposite, piece(1, 9, seed=4)])
    assert taken == [False, True] and int(cells.time) == 21


@kernel
def test_the_kernel_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("taken")

    monkeypatch.setattr(cells_kernel, "take_steps", never)
    cells = Cells(MemoryConfig(capacity=3), 0.2, 1, DIM, DEVICE)
    with plainly():
        cells.run(piece(1, 3, seed=0))
    with pytest.raises(AssertionError, match="taken"):
        cells.run(piece(1, 3, seed=0))
    many = MemoryConfig(capacity=cells_module.FUSED_MOST + 1)
    Cells(many, 0.2, 1, DIM, DEVICE).run(piece(1, 2, seed=0))
