"""Cells of 16 bits: what they lose, and that every way of reading and writing keeps them alike."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import DIM, Event, configs, events
from toys import EVERY_KIND, assert_same, make_adapter, nbytes, random_stream, run, snapshot

from labelmem import LabeledMemory, MemoryConfig
from labelmem.config import NarrowMemoryConfig
from labelmem.fast import plainly
from labelmem.narrow import MOST, narrowed, widened


def kept(v: np.ndarray, turns: int) -> np.ndarray:
    """The slow way: rounded up where the golden ratio's multiples say so."""
    unit = np.float32(np.abs(v).max() / MOST)
    out = np.zeros_like(v)
    for j, x in enumerate(v / unit if unit > 0 else v):
        step = (j + 1) * 2654435769 % 2**32
        up = ((turns * step + 2**31) % 2**32) / 2**32
        out[j] = max(-MOST, min(MOST, math.floor(x + up))) * unit
    return out


# ---------------------------------------------------------------- one vector


@settings(max_examples=50)
@given(
    v=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9),
    turn=st.integers(0, 10**6),
)
def test_numbers_come_back_within_a_unit(v: list[float], turn: int) -> None:
    wide = torch.tensor(v)
    found = widened(narrowed(wide, torch.tensor(turn)), torch.float64)
    unit = float(wide.abs().max()) / MOST
    assert float((found - wide).abs().max()) <= unit * 1.001 + 1e-38
    assert found.numpy() == pytest.approx(kept(np.array(v), turn), abs=unit * 1.001 + 1e-38)


def test_the_first_time_to_the_nearest_and_zero_stays_zero() -> None:
    v = torch.tensor([[100.0, 0.4 * 100 / MOST, -0.4 * 100 / MOST], [0.0, 0.0, 0.0]])
    found = widened(narrowed(v, torch.tensor(0)), torch.float32)
    assert found.tolist() == [[pytest.approx(100.0), 0, 0], [0, 0, 0]]


def test_what_each_write_adds_is_not_rounded_away() -> None:
    # From the hundredth write on, the small entry of h is less than half a unit of the cell.
    h = torch.tensor([1.0, 1e-3, -2e-4])
    cell = narrowed(h, torch.tensor(0))
    for turn in range(1, 5000):
        cell = narrowed(widened(cell, torch.float32) + h, torch.tensor(turn))
    assert (widened(cell, torch.float32) / 5000).tolist() == pytest.approx(h.tolist(), abs=5e-5)


# ---------------------------------------------------------------- the memory


def differences(
    h: torch.Tensor, y: list[int], labels: int, options: dict[str, Any], fast: bool
) -> float:
    """The largest difference of s between cells of 32 and of 16 bits along a stream."""
    wide = LabeledMemory(config=MemoryConfig(**options))
    narrow = LabeledMemory(config=NarrowMemoryConfig(**options), fast=fast)
    worst = 0.0
    for t, label in enumerate(y):
        a, b = (memory.read(h[t : t + 1]).scores(labels) for memory in (wide, narrow))
        worst = max(worst, float((a - b).abs().max()))
        for memory in (wide, narrow):
            memory.write(h[t : t + 1], torch.tensor([label]), a)
    assert narrow.v.dtype == torch.int16 and len(narrow) == len(wide)
    return worst


@pytest.mark.parametrize("cells", [1, 4])
@pytest.mark.parametrize("fast", [True, False], ids=["short way", "specification"])
@pytest.mark.parametrize("lam", [5.0, 20.0])
def test_probabilities_stay_within_a_thousandth(cells: int, fast: bool, lam: float) -> None:
    # A few directions and many writes of each, as of hidden states: all entries between -1 and 1.
    generator = torch.Generator().manual_seed(0)
    about = torch.randn(6, 32, generator=generator)
    y = torch.randint(6, (300,), generator=generator)
    h = torch.tanh(about[y] + torch.randn(300, 32, generator=generator))
    options = {"lam": lam, "margin": math.inf, "cells_per_label": cells}
    assert differences(h, y.tolist(), 6, options, fast) < 1e-3


@settings(max_examples=25)
@given(config=configs, stream=events(), blocks=st.sampled_from([(), (2, 1), None]))
def test_the_short_way_keeps_what_the_specification_keeps(
    config: MemoryConfig, stream: list[Event], blocks: tuple[int, ...] | None
) -> None:
    options = {**vars(config), "lam": min(config.lam, 5.0)}
    short, long = (
        LabeledMemory(DIM, NarrowMemoryConfig(**options), blocks=blocks, fast=fast)
        for fast in (True, False)
    )
    for event in stream:
        h, y, P = torch.tensor([event.h]), torch.tensor([event.y]), event.probs().float()
        mine, theirs = short.read(h), long.read(h)
        assert torch.allclose(mine.score, theirs.score, atol=1e-3)
        if mine.past is not None and theirs.past is not None:
            for name in ("cosine", "size"):
                a, b = getattr(mine.past, name), getattr(theirs.past, name)
                assert torch.allclose(a[mine.leads], b[mine.leads], atol=3e-3), name
        assert torch.equal(short.write(h, y, P), long.write(h, y, P))
    for name, value in short.tensors().items():
        other = long.tensors()[name]
        if name == "v":  # where rounding is a matter of the last digit, a unit apart
            value, other = (widened(x, torch.float64) for x in (value, other))
        assert torch.allclose(value.double(), other.double(), rtol=1e-4, atol=3e-3), name


def test_half_the_bytes() -> None:
    wide, narrow = (LabeledMemory(128, kind()) for kind in (MemoryConfig, NarrowMemoryConfig))
    for memory in (wide, narrow):
        for y in range(40):
            memory.write(torch.ones(1, 128), torch.tensor([y]))
    assert narrow.v.untyped_storage().nbytes() < 0.51 * wide.v.untyped_storage().nbytes()


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("cells", [1, 2])
def test_streams_say_the_same_saved_or_not(kind: str, cells: int, tmp_path: Path) -> None:
    memory = MemoryConfig(cells_per_label=cells, capacity=6, margin=50.0)
    adapter = make_adapter(kind, NarrowMemoryConfig(**vars(memory)))
    stream, other = adapter.stream(), make_adapter(kind, memory).stream()
    x, ys = random_stream(3, 30, range(4), ["a", "b"])
    for mine, theirs in zip(run(stream, x, ys[:20]), run(other, x, ys[:20]), strict=True):
        assert float((mine - theirs).abs().max()) < 1e-3
    stream.save(tmp_path / "stream")
    again = adapter.load_stream(tmp_path / "stream")
    assert_same(snapshot(stream), snapshot(again))
    for mine, theirs in zip(run(stream, x[20:], ys[20:]), run(again, x[20:], ys[20:]), strict=True):
        assert torch.equal(mine, theirs)
    assert nbytes(stream) < nbytes(other)


@pytest.mark.parametrize("cells", [1, 3])
def test_a_memory_may_be_saved_with_one_width_and_restored_with_another(cells: int) -> None:
    options: dict[str, Any] = {"margin": 50.0, "cells_per_label": cells}
    kinds = (MemoryConfig, NarrowMemoryConfig)
    wide, narrow = (LabeledMemory(config=kind(**options)) for kind in kinds)
    h = torch.randn(20, 1, 6, generator=torch.Generator().manual_seed(1))
    for t in range(19):
        wide.write(h[t], torch.tensor([t % 5]))
    narrow.restore(wide.tensors())
    assert (narrow.dim, narrow.v.dtype) == (6, torch.int16)
    expected = wide.read(h[19]).scores(5)
    assert torch.allclose(narrow.read(h[19]).scores(5), expected, atol=1e-4)
    wide.restore(narrow.tensors())
    assert (wide.dim, wide.v.dtype) == (6, torch.float32)
    assert torch.allclose(wide.read(h[19]).scores(5), expected, atol=1e-4)


def test_gradients_pass_through_reads() -> None:
    memory = LabeledMemory(2, NarrowMemoryConfig())
    memory.write(torch.tensor([[1.0, 0.5]]), torch.tensor([0]))
    memory.write(torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
    h = torch.tensor([[0.3, 0.4]], requires_grad=True)
    memory.read(h).scores(2)[0, 0].backward()
    assert h.grad is not None and bool(h.grad.any())
    with plainly():
        assert memory.read(h.detach()).scores(2).sum() == pytest.approx(1)


def test_files_say_how_wide_cells_are_only_if_they_are_narrow() -> None:
    config = NarrowMemoryConfig(lam=3.0, margin=math.inf)
    assert MemoryConfig.from_plain(config.plain()) == config
    assert "cell_bits" not in MemoryConfig().plain() and MemoryConfig().cell_bits is None
