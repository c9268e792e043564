"""The memory in numpy against the oracle, and beside the memory in torch."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from oracle.lmn import OracleMemory
from slow import oracle_config
from strategies import DIM, LABELS, Event, configs, events, vectors

from labelmem import LabeledMemory, MemoryConfig
from labelmem.interop.small_memory import SmallMemory


def write(memory: SmallMemory, event: Event) -> bool:
    return memory.write(np.array(event.h), event.y, event.probs()[0].numpy())


def scores(memory: SmallMemory, h: list[float]) -> list[float]:
    s = memory.read(np.array(h)).tolist()
    return s + [0.0] * (LABELS - len(s))


def cells(memory: SmallMemory) -> list[tuple[int, list[float], float, int]]:
    """Label, v, alpha and last write, from the oldest cell to the newest."""
    held = [(y, k) for y in range(memory.labels) for k in range(memory.count[y])]
    held.sort(key=lambda at: int(memory.born[at]))
    return [
        (at[0], memory.v[at].tolist(), float(memory.alpha[at]), memory.written[at[0]])
        for at in held
    ]


@settings(max_examples=150)
@given(config=configs, stream=events(max_size=40), probe=vectors)
def test_small_memory_is_the_oracle(
    config: MemoryConfig, stream: list[Event], probe: list[float]
) -> None:
    memory, slow = SmallMemory(config, DIM), OracleMemory(oracle_config(config))
    for t, event in enumerate(stream):
        wrote = write(memory, event)
        happened = slow.write(event.h, event.y, dict(enumerate(event.probs()[0].tolist())), t + 1)
        assert wrote == (happened != "none")
        for h in (probe, event.h):
            expected = slow.read(h)
            assert scores(memory, h) == pytest.approx(
                [expected.get(y, 0.0) for y in range(LABELS)], abs=1e-9
            )
    seen = cells(memory)
    assert len(memory) == len(seen)
    assert [(label, time) for label, _, _, time in seen] == [
        (cell.label, cell.written) for cell in slow.cells
    ]
    for (_, v, alpha, _), cell in zip(seen, slow.cells, strict=True):
        assert v == pytest.approx(cell.v, abs=1e-9)
        assert alpha == pytest.approx(cell.alpha, abs=1e-9)


@given(config=configs, stream=events(max_size=20))
def test_every_vector_is_written_without_a_margin(
    config: MemoryConfig, stream: list[Event]
) -> None:
    always = MemoryConfig(lam=config.lam, cells_per_label=2, margin=float("inf"))
    memory = SmallMemory(always, DIM)
    assert all(write(memory, event) for event in stream)


@pytest.mark.parametrize("cells_per_label", [1, 5])
def test_a_stream_of_its_own_predictions_is_that_of_the_memory_in_torch(
    cells_per_label: int,
) -> None:
    config = MemoryConfig(lam=9.0, cells_per_label=cells_per_label, margin=3.0)
    ours, theirs = SmallMemory(config, 4), LabeledMemory(4, config, dtype=torch.float64)
    rng = np.random.default_rng(0)
    for _ in range(200):
        y = int(rng.integers(6))
        h = rng.normal(size=4) + np.eye(4)[y % 4] * (2 + y)
        P = theirs.read(torch.tensor(h[None])).scores(6)
        s = np.pad(ours.read(h), (0, 6 - ours.labels))
        np.testing.assert_allclose(s, P[0].numpy(), atol=1e-9)
        wrote = theirs.write(torch.tensor(h[None]), torch.tensor([y]), P)
        assert ours.write(h, y, s) == bool(wrote)
    assert len(ours) == len(theirs) > 5


@given(config=configs, stream=events(max_size=20))
def test_to_learn_is_to_read_and_then_to_write(config: MemoryConfig, stream: list[Event]) -> None:
    one = SmallMemory(config, DIM)
    for event in stream:
        other = copy.deepcopy(one)  # from the same place each time: ties are decided alike
        h, y = np.array(event.h), min(event.y, one.labels)
        look = one.look(h) if y % 2 else None
        assert one.learn(h, y, look) == other.write(h, y, other.read(h))
        np.testing.assert_allclose(one.cells, other.cells, atol=1e-9)
        np.testing.assert_allclose(one.length, other.length, atol=1e-9)


def test_widening_changes_no_answer() -> None:
    memory = SmallMemory(MemoryConfig(), 2)
    memory.write(np.array([1.0, 2.0]), 0, np.zeros(0))
    memory.write(np.array([2.0, -1.0]), 1, np.zeros(0))
    before = memory.read(np.array([0.3, 0.4]))
    memory.widen(5)
    memory.widen(4)  # never narrower
    np.testing.assert_allclose(memory.read(np.array([0.3, 0.4, 0, 0, 0])), before, atol=1e-15)
