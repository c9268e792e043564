"""The memory in numpy against the oracle, and beside the memory in torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from oracle.lmn import OracleMemory
from slow import oracle_config
from strategies import DIM, LABELS, Event, configs, events, vectors

from labelmem import LabeledMemory, MemoryConfig
from labelmem.interop.small_memory import SmallMemory
from labelmem.interop.vectors import softmax


def scores(memory: SmallMemory, h: list[float]) -> list[float]:
    s = softmax(memory.look(np.array(h))[0]).tolist() if memory.written else []
    return s + [0.0] * (LABELS - len(s))


def cells(memory: SmallMemory) -> list[tuple[int, list[float], float, int]]:
    """Label, v, alpha and last write, from the oldest cell to the newest."""
    held = sorted(zip(memory.label.tolist(), memory.cells.tolist(), strict=True), key=_born)
    return [(y, v, alpha, memory.written[y]) for y, (alpha, _, *v) in held]


def _born(held: tuple[int, list[float]]) -> float:
    return held[1][1]


@settings(max_examples=150)
@given(config=configs, stream=events(max_size=40), probe=vectors)
def test_small_memory_is_the_oracle(
    config: MemoryConfig, stream: list[Event], probe: list[float]
) -> None:
    memory, slow = SmallMemory(config, DIM), OracleMemory(oracle_config(config))
    for t, event in enumerate(stream):
        y = min(event.y, len(memory.written))  # labels are numbered as they come
        P = slow.read(event.h)
        rivals = [p for label, p in P.items() if label != y]
        lead = math.log(P.get(y) or 1e-300) - math.log(max(rivals, default=0) or 1e-300)
        if P and min(abs(lead), abs(lead - config.margin)) < 1e-9:
            break  # within rounding of a threshold, where either answer is right
        look = memory.look(np.array(event.h)) if t % 2 else None
        wrote = memory.learn(np.array(event.h), y, look)
        happened = slow.write(event.h, y, P, t + 1)
        assert wrote == (happened != "none")
        for h in (probe, event.h):
            expected = slow.read(h)
            assert scores(memory, h) == pytest.approx(
                [expected.get(y, 0.0) for y in range(LABELS)], abs=1e-9
            )
    seen = cells(memory)
    assert [(label, time) for label, _, _, time in seen] == [
        (cell.label, cell.written) for cell in slow.cells
    ]
    for (_, v, alpha, _), cell in zip(seen, slow.cells, strict=True):
        assert v == pytest.approx(cell.v, abs=1e-9)
        assert alpha == pytest.approx(cell.alpha, abs=1e-9)


@given(stream=events(max_size=20))
def test_every_vector_is_written_without_a_margin(stream: list[Event]) -> None:
    memory = SmallMemory(MemoryConfig(cells_per_label=2, margin=float("inf")), DIM)
    for event in stream:
        assert memory.learn(np.array(event.h), min(event.y, len(memory.written)))


@pytest.mark.parametrize("cells_per_label", [1, 5])
def test_a_stream_of_its_own_predictions_is_that_of_the_memory_in_torch(
    cells_per_label: int,
) -> None:
    config = MemoryConfig(lam=9.0, cells_per_label=cells_per_label, margin=3.0)
    ours, theirs = SmallMemory(config, 4), LabeledMemory(4, config, dtype=torch.float64)
    rng = np.random.default_rng(0)
    for t in range(200):
        y = t if t < 6 else int(rng.integers(6))
        h = rng.normal(size=4) + np.eye(4)[y % 4] * (2 + y)
        P = theirs.read(torch.tensor(h[None])).scores(6)
        if t:
            s = softmax(ours.look(h)[0])
            np.testing.assert_allclose(s, P[0, : len(s)].numpy(), atol=1e-9)
        wrote = theirs.write(torch.tensor(h[None]), torch.tensor([y]), P)
        assert ours.learn(h, y) == bool(wrote)
    assert len(ours.label) == len(theirs) > 5


def test_widening_changes_no_answer() -> None:
    memory = SmallMemory(MemoryConfig(), 2)
    memory.learn(np.array([1.0, 2.0]), 0)
    memory.learn(np.array([2.0, -1.0]), 1)
    before = memory.look(np.array([0.3, 0.4]))[0]
    memory.widen(5)
    memory.widen(4)  # never narrower
    np.testing.assert_allclose(memory.look(np.array([0.3, 0.4, 0, 0, 0]))[0], before, atol=1e-14)
