"""A stream that was saved and loaded continues bit for bit as if it never had been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from toys import random_combiner

from labelmem import Adapter, MemoryConfig, Stream
from labelmem.combiner import Combiner
from labelmem.config import IndexConfig, IndexedMemoryConfig, NarrowMemoryConfig

DIM, LABELS, STEPS = 6, 200, 24
MEMORIES = {
    "one cell": MemoryConfig(margin=3.0),
    "several cells": MemoryConfig(margin=3.0, cells_per_label=3, capacity=14),
    "many cells": MemoryConfig(margin=50.0, cells_per_label=20),
    "index": IndexedMemoryConfig(margin=50.0, index=IndexConfig(lists=2, probes=1, least=4)),
    "16 bits": NarrowMemoryConfig(margin=50.0),
}


def inputs() -> list[tuple[torch.Tensor, int]]:
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(9, (STEPS,), generator=generator).tolist()
    # Some labels are the stream's own.
    labels = [label + LABELS if label > 6 else label for label in labels]
    return list(zip(torch.randn(STEPS, DIM, generator=generator), labels, strict=True))


def adapter(kind: str, memory: MemoryConfig) -> Adapter:
    combiner: float | Combiner = 0.4 if kind == "fixed" else random_combiner(DIM, kind=kind)
    torch.manual_seed(0)
    model = torch.nn.Linear(DIM, LABELS)
    with torch.no_grad():
        model.bias[20:] -= 9  # as in a trained model, most labels are hardly likely
    return Adapter(model, memory=memory, combiner=combiner)


def run(stream: Stream, steps: list[tuple[torch.Tensor, int]]) -> list[Any]:
    found: list[Any] = []
    for x, y in steps:
        p = stream.predict(x)
        found += [p.probs, p.theta, p.model_probs, p.memory_probs]
        stream.observe(y)
    return found


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("kind", ["fixed", "stream", "label"])
def test_a_loaded_stream_goes_on_bit_for_bit(kind: str, memory: str, tmp_path: Path) -> None:
    made = adapter(kind, MEMORIES[memory])
    live, steps = made.stream(), inputs()
    for t in range(0, STEPS, 3):
        live.save(tmp_path / "stream")
        loaded = made.load_stream(tmp_path / "stream")
        again = run(loaded, steps[t:])
        expected = run(made.load_stream(tmp_path / "stream"), steps[t:])
        assert all(torch.equal(a, b) for a, b in zip(again, expected, strict=True))
        live_steps = run(live, steps[t : t + 3])
        assert all(torch.equal(a, b) for a, b in zip(live_steps, again, strict=False))


@pytest.mark.parametrize("kind", ["fixed", "stream", "label"])
def test_the_end_is_the_same_wherever_it_was_saved(kind: str, tmp_path: Path) -> None:
    made, steps = adapter(kind, MEMORIES["one cell"]), inputs()
    live = made.stream()
    run(live, steps)
    for t in (1, 5, STEPS - 1):
        half = made.stream()
        run(half, steps[:t])
        half.save(tmp_path / "stream")
        loaded = made.load_stream(tmp_path / "stream")
        run(loaded, steps[t:])
        mine, theirs = (stream.tensors() for stream in (live, loaded))
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
