"""What a stream costs in memory: proportional to its cells, never to labels × cells."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from toys import Stateless, cells_in, nbytes, random_combiner

from labelmem import Adapter, MemoryConfig, Stream


def write_cells(stream: Stream, cells: int, dim: int) -> None:
    """Observe a new label at every step, so that each step writes one cell."""
    x = torch.randn(cells, dim, generator=torch.Generator().manual_seed(0))
    for t in range(cells):
        stream.predict(x[t])
        stream.observe(1000 + t)
    assert cells_in(stream) == cells


def test_ten_thousand_streams_of_a_hundred_cells_stay_under_700_mb() -> None:
    # Scaled down: a few streams, what their tensors hold and what Python allocates around them. So
    # many that what they share and is made now and then, such as answers, is not a part of each.
    streams, dim = 12, 128
    adapter = Adapter(nn.Linear(dim, 10), combiner=0.5, memory=MemoryConfig(capacity=100))

    def made() -> list[Stream]:
        held = [adapter.stream() for _ in range(streams)]
        for stream in held:
            write_cells(stream, 100, dim)
        gc.collect()
        return held

    tracemalloc.start()
    try:
        others = made()  # and whatever is made once
        before = tracemalloc.get_traced_memory()[0]
        held = made()
        python = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(others) == len(held)
    each = (sum(map(nbytes, held)) + python) / streams
    assert each >= 100 * dim * 4
    assert 10_000 * each < 700e6


def test_a_lockstep_batch_costs_no_more() -> None:
    batch = Adapter(nn.Linear(128, 10), combiner=0.5, memory=MemoryConfig(capacity=100)).streams(50)
    generator = torch.Generator().manual_seed(0)
    for t in range(100):
        batch.predict(torch.randn(50, 128, generator=generator))
        batch.observe([t] * 50)
    assert cells_in(batch) > 50 * 80
    assert nbytes(batch) * 10_000 / 50 < 700e6


@pytest.mark.parametrize("threshold", [None, 0.001])
def test_a_stream_over_forty_thousand_labels_is_small(threshold: float | None) -> None:
    labels, dim = 40_000, 32
    combiner: Any = 0.5
    if threshold is not None:
        combiner = random_combiner(dim, hidden=16, active_threshold=threshold)
    model = Stateless(labels=labels, dim=dim)
    with torch.no_grad():  # an undecided model: each label gets about 1 / 40,000
        model.head.weight.mul_(0.05)
        model.head.bias.mul_(0.05)
    stream = Adapter(model, combiner=combiner).stream()
    generator = torch.Generator().manual_seed(0)
    for t in range(50):
        stream.predict(torch.randn(3, generator=generator))
        stream.observe(800 * t)
    assert cells_in(stream) == 50
    assert nbytes(stream) < 200_000
    assert sum(t.nbytes for t in stream.tensors().values()) < 200_000


def test_an_observed_prediction_is_not_kept() -> None:
    stream = Adapter(Stateless(labels=1000), combiner=0.5).stream()
    prediction = weakref.ref(stream.predict(torch.ones(3)))
    assert prediction() is not None
    stream.observe(1)
    gc.collect()
    assert prediction() is None
