"""Compiled kernels of one stream, against the specification and against plain arithmetic."""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import DIM, LABELS, Event, configs, events
from torch import nn
from toys import make_adapter, random_stream, snapshot

from labelmem import LabeledMemory, MemoryConfig
from labelmem import functional as F
from labelmem.errors import InputError
from labelmem.fast import plainly

pytest.importorskip("numba")

from labelmem.engines import numba as compiled
from labelmem.engines.numba import grouped
from labelmem.engines.numba import mix as compiled_mix
from labelmem.engines.numba import write as compiled_write
from labelmem.engines.numba.cells import CompiledRead
from labelmem.engines.numba.grouped import GroupedRead
from labelmem.engines.numba.label import missed_by


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ---------------------------------------------------------------- arithmetic


def test_exponentials_and_logarithms_lose_nothing_but_rounding() -> None:
    x = np.random.default_rng(0).uniform(-87, 88, 500).astype(np.float32)
    found = np.array([compiled.exp(value) for value in x], np.float64)
    assert np.abs(found / np.exp(x.astype(np.float64)) - 1).max() < 3e-7
    y = np.concatenate([found.astype(np.float32), np.float32([0.5, 0.999, 1, 1.001, 2])])
    exact = np.log(y.astype(np.float64))
    logs = np.array([compiled.log(value) for value in y], np.float64)
    assert (np.abs(logs - exact) <= 3e-7 * np.abs(exact) + 1e-9).all()
    below = np.float32([-88, -1e30, -math.inf])
    assert [float(compiled.exp(value)) for value in below] == [0, 0, 0]


@pytest.mark.parametrize("size", [9, 17, 40, 61])
def test_a_softmax_does_not_depend_on_where_its_arrays_lie(size: int) -> None:
    x, found = drawn(size, size), set()
    for gap in range(80):
        room = np.zeros(2 * size + gap, np.float32)
        room[:size] = x
        top, beyond = compiled.softmax(room[:size], room[size + gap :])
        found.add((top, beyond, room[size + gap :].tobytes()))
    assert len(found) == 1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_the_largest_of_any_sign(size: int, sign: int) -> None:
    x = sign * np.abs(drawn(size, size))
    assert compiled.largest(x) == x.max()
    assert compiled.largest(x[:0]) == -math.inf


def test_softmax_of_far_values() -> None:
    x = np.float32([1000, 999, -1000, -math.inf])
    out = np.empty_like(x)
    top, beyond = compiled.softmax(x, out)
    assert out == pytest.approx(torch.softmax(torch.from_numpy(x), 0).numpy(), abs=1e-7)
    assert (top, beyond) == (1000, pytest.approx(math.log1p(math.exp(-1)), abs=1e-6))


# ---------------------------------------------------------------- mixture and margin

shares = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@settings(max_examples=40)
@given(
    logits=st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=5),
    s=shares,
    theta=st.sampled_from([0.0, 0.4, 1.0]),
    each=st.booleans(),
    partition=st.booleans(),
)
def test_mixtures(
    logits: list[float], s: list[int], theta: float, each: bool, partition: bool
) -> None:
    width = max(len(logits), len(s))
    model = torch.nn.functional.pad(
        torch.softmax(torch.tensor([logits]), 1), (0, width - len(logits))
    )
    memory = torch.zeros(1, width)
    memory[0, : len(s)] = torch.tensor(s) / max(sum(s), 1)
    gate = torch.linspace(0, 1, width)[None] if each else torch.full((1, width), theta)
    expected = F.mix(F.outside(model, memory) if partition else model, memory, gate)
    names, score, out = np.arange(len(s)), memory[0, : len(s)].numpy(), np.empty((4, width), "f")
    compiled_mix.mix_fixed(np.float32(logits), names, score, theta, partition, out)
    if each:
        out[1] = gate[0].numpy()
        compiled_mix.mix_each(out[2], names, score, out[1], partition, out[3], out[0])
    for found, right in zip(out, (expected, gate, model, memory), strict=True):
        assert found == pytest.approx(right[0].numpy(), abs=1e-6)


@settings(max_examples=40)
@given(
    P=st.lists(st.integers(0, 4), min_size=0, max_size=LABELS),
    y=st.integers(0, LABELS),
    margin=st.sampled_from([-1.0, 0.0, 1.0, math.inf]),
)
def test_margins(P: list[int], y: int, margin: float) -> None:
    probs = Event([], y, P).probs().float()
    loss, wrong = F.margin_loss(probs, torch.tensor([y]), margin)
    assert compiled_write.margin_of(probs[0].numpy(), y, margin) == (bool(loss > 0), bool(wrong))


def test_of_labels_that_score_alike_the_first_counts() -> None:
    r, s = np.float32([0.4, 0.4, 0.2]), np.zeros(3, np.float32)
    for y, right in ((0, 0), (1, 1), (2, 1), (7, 1)):
        assert missed_by(r, y) == right
        assert missed_by(s, y)  # scores that are all zero have missed


# ---------------------------------------------------------------- the memory


def alike(a: Any, b: Any, name: str) -> None:
    mine, theirs = getattr(a, name), getattr(b, name)
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, name
    assert torch.allclose(mine.double(), theirs.double(), rtol=2e-5, atol=2e-5), name


@settings(max_examples=25)
@given(config=configs, stream=events(), blocks=st.sampled_from([(), (2, 1), None]))
def test_cells_are_read_and_written_as_specified(
    config: MemoryConfig, stream: list[Event], blocks: tuple[int, ...] | None
) -> None:
    short, long = (LabeledMemory(DIM, config, blocks=blocks, fast=fast) for fast in (True, False))
    reads = []
    for event in stream:
        h, y, P = torch.tensor([event.h]), torch.tensor([event.y]), event.probs().float()
        reads.append((short.read(h), long.read(h)))
        assert torch.equal(short.write(h, y, P), long.write(h, y, P))
    for mine, theirs in reads:  # looked at after all writes: none of them changed what was read
        for name in ("label", "alpha", "group", "age", "weight", "score"):
            alike(mine, theirs, name)
        if mine.past is not None:
            assert theirs.past is not None and torch.equal(mine.leads, theirs.leads)
            if config.cells_per_label == 1:
                for name in ("writes", "age", "since_first", "rates", "cosine", "size"):
                    alike(mine.past, theirs.past, name)
    for name, value in short.tensors().items():
        assert torch.allclose(value.double(), long.tensors()[name].double(), atol=2e-5), name


def test_a_copy_of_a_memory_is_a_memory_of_its_own() -> None:
    memory = LabeledMemory(DIM, MemoryConfig(margin=50.0))
    h = torch.from_numpy(drawn(1, 9, 1, DIM))
    for t, row in enumerate(h):
        memory.write(row, torch.tensor([t % 4]))
    read = memory.read(h[0])
    assert isinstance(read, CompiledRead)
    before, other = read.score.clone(), copy.deepcopy(memory)
    other.write(h[1], torch.tensor([0]))
    assert torch.equal(memory.read(h[0]).score, before)
    assert not torch.equal(other.read(h[0]).score, before)


def test_what_is_not_finite_is_refused_and_changes_nothing() -> None:
    memory = LabeledMemory(DIM)
    memory.write(torch.ones(1, DIM), torch.tensor([1]))
    before = {name: value.clone() for name, value in memory.tensors().items()}
    for bad in (math.nan, math.inf):
        with pytest.raises(InputError, match="NaN or infinite"):
            memory.write(torch.tensor([[1.0, bad, 0.0]]), torch.tensor([1]))
    with pytest.raises(InputError, match="label ids from 0"):
        memory.write(torch.ones(1, DIM), torch.tensor([-1]))
    assert all(torch.equal(value, before[name]) for name, value in memory.tensors().items())


@pytest.mark.parametrize("kind", ["fixed", "dense", "stream"])
def test_changing_ways_within_a_stream_changes_nothing(kind: str) -> None:
    stream, other = (make_adapter(kind).stream() for _ in range(2))
    x, ys = random_stream(5, 30, range(4), ["a"])
    for t, y in enumerate(ys):
        seen = stream.predict(x[t]).probs
        with plainly():
            assert torch.allclose(seen, other.predict(x[t]).probs, atol=2e-6)
            other.observe(y)
            if t % 3 == 0:
                stream.observe(y)
        if t % 3:
            stream.observe(y)
    assert snapshot(stream).keys() == snapshot(other).keys()


def test_kernels_are_compiled_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    real = compiled.numba.njit

    def njit(cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(compiled.numba, "njit", njit)
    assert compiled.kernel(lambda x: x + 1)(1) == 2


@pytest.mark.parametrize("cells", [1, 3])
def test_what_was_read_stays_when_cells_are_written_another_way(cells: int) -> None:
    memory = LabeledMemory(DIM, MemoryConfig(margin=50.0, cells_per_label=cells), blocks=())
    h, wrong = torch.from_numpy(drawn(1, 9, 1, DIM)), torch.tensor([[0.0, 0.5, 0.5, 0.0]])
    for t, row in enumerate(h):
        memory.write(row, torch.tensor([t % 4]), wrong)
    for way in (nullcontext, plainly):
        read = memory.read(h[0])
        told = [read.label, read.alpha, read.group, read.age, read.past.rates]  # type: ignore[union-attr]
        seen, late = [x.clone() for x in told], memory.read(h[0])
        with way():
            memory.write(h[1], torch.tensor([5]), wrong, mask=torch.tensor([True]))
            memory.write(h[2], torch.tensor([0]), wrong)
        after = [late.label, late.alpha, late.group, late.age, late.past.rates]  # type: ignore[union-attr]
        assert all(torch.equal(a, b) for a, b in zip(seen, after, strict=True))


@pytest.mark.parametrize("blocks", [(), (2, 1), None])
@pytest.mark.parametrize("capacity", [None, 45])
@pytest.mark.parametrize("lam", [5.0, 60.0])
def test_labels_with_many_cells_beside_others(
    lam: float,
    capacity: int | None,
    blocks: tuple[int, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowds, read_crowded = [], grouped.read_crowded

    def noted(crowd_of_cell: Any, *rest: Any) -> None:
        crowds.append(1 + int(crowd_of_cell.max()))
        read_crowded(crowd_of_cell, *rest)

    monkeypatch.setattr(grouped, "read_crowded", noted)
    many = {"cells_per_label": None, "capacity": capacity, "evict": "oldest"}
    config = MemoryConfig(lam=lam, margin=50.0, **many)  # type: ignore[arg-type]
    short, long = (LabeledMemory(DIM, config, blocks=blocks, fast=fast) for fast in (True, False))
    h, wrong = torch.from_numpy(drawn(3, 160, 1, DIM)), torch.eye(99)[98:]
    reads = []
    for t, row in enumerate(h):
        # Two labels get many cells; then others come, which at capacity take theirs away.
        y = torch.tensor([t % 2 if t < 38 or t % 15 == 0 else 2 + t % 60])
        reads.append((short.read(row), long.read(row)))
        assert torch.equal(short.write(row, y, wrong), long.write(row, y, wrong))
    assert max(crowds, default=0) == (0 if blocks == (2, 1) else 2)
    for mine, theirs in reads:
        assert blocks == (2, 1) or isinstance(mine, GroupedRead) or not len(mine.label[0])
        for name in ("label", "alpha", "group", "age", "weight", "score", "strength", "cosine"):
            alike(mine, theirs, name)
        if mine.past is not None and theirs.past is not None:
            for name in ("writes", "age", "since_first", "rates", "cosine", "size"):
                told, expected = getattr(mine.past, name), getattr(theirs.past, name)
                lead = mine.leads
                assert torch.allclose(told[lead].double(), expected[lead].double(), atol=2e-5), name
    again = LabeledMemory(DIM, config, blocks=blocks)
    again.restore(short.tensors())
    assert torch.equal(again.read(h[0]).score, short.read(h[0]).score)


def test_a_read_of_something_that_is_not_finite_leaves_nothing_behind() -> None:
    config = MemoryConfig(margin=50.0, cells_per_label=2, capacity=5)
    short, long = (LabeledMemory(DIM, config, fast=fast) for fast in (True, False))
    h, wrong = torch.from_numpy(drawn(1, 12, 1, DIM)), torch.eye(9)[8:]
    for t, row in enumerate(h):
        short.read(torch.full((1, DIM), math.nan))
        for memory in (short, long):
            memory.write(row, torch.tensor([t // 3]), wrong)
        for name in ("label", "weight", "score"):
            alike(short.read(h[0]), long.read(h[0]), name)


def forms_of(x: torch.Tensor) -> list[torch.Tensor]:
    """The same numbers (1, d), lying in other ways."""
    wide = torch.full((3, 2 * x.shape[1]), math.nan)
    wide[1, ::2] = x[0]
    tall = x.t().contiguous().expand(-1, 2)
    return [x, wide[1:2, ::2], tall[:, :1].t(), torch.cat([x, x])[1:], nn.Parameter(x.clone())]


@pytest.mark.parametrize("options", [{}, {"cells_per_label": 3}, {"decay": 0.9, "capacity": 5}])
@pytest.mark.parametrize("blocks", [None, (1, 2)])
def test_vectors_may_lie_in_any_way(options: Any, blocks: tuple[int, ...] | None) -> None:
    config = MemoryConfig(lam=5.0, margin=1.0, **options)
    short, long = (LabeledMemory(DIM, config, blocks=blocks, fast=fast) for fast in (True, False))
    P = torch.softmax(torch.from_numpy(drawn(2, 40, 1, 9)), dim=2)
    for t, row in enumerate(torch.from_numpy(drawn(1, 40, 1, DIM))):
        y, h = torch.tensor([t * 5 % 8]), forms_of(row)[t % 5]
        believed = None if t % 4 == 0 else forms_of(P[t])[t % 3]
        assert torch.equal(short.write(h, y, believed), long.write(row, y, believed))
        for form in forms_of(row):
            mine, theirs = short.read(form), long.read(row)
            for name in ("label", "alpha", "age", "weight", "score"):
                alike(mine, theirs, name)


def test_cells_that_are_known_take_nothing_else() -> None:
    memory = LabeledMemory(DIM)
    for t, h in enumerate(torch.from_numpy(drawn(1, 9, 1, DIM))):
        memory.write(h, torch.tensor([t]))
    for bad in (h[:, :-1], h[0], torch.cat([h, h])):
        with pytest.raises(InputError, match="one vector for each stream"):
            memory.read(bad)
        with pytest.raises(InputError, match="one vector for each stream"):
            memory.write(bad, torch.tensor([1]))
    for y in (torch.tensor([1, 2]), torch.tensor([1.0]), torch.tensor(1), torch.tensor([-1])):
        with pytest.raises(InputError, match="label ids from 0"):
            memory.write(h, y)
    with pytest.raises(InputError, match="rows of probabilities"):
        memory.write(h, torch.tensor([1]), torch.ones(2))
    assert memory.write(h, torch.tensor([1], dtype=torch.int32)).tolist() == [True]
    assert len(memory) == 9 and int(memory.time) == 10


def test_what_was_told_of_known_cells_stays_while_they_move() -> None:
    memory = LabeledMemory(DIM, MemoryConfig(lam=5.0))
    h = torch.from_numpy(drawn(1, 400, 1, DIM))
    kept, seen = [], []
    for t, row in enumerate(h):
        memory.write(row, torch.tensor([t]))  # the cells move to other places now and then
        kept.append(memory.read(h[0]))
        if t % 50 == 0:
            seen.append((t, *(getattr(kept[t], x).clone() for x in ("label", "score", "age"))))
    for t, *told in seen:
        with plainly():
            other = LabeledMemory(DIM, MemoryConfig(lam=5.0))
            for y in range(t + 1):
                other.write(h[y], torch.tensor([y]))
            expected = other.read(h[0])
        for x, name in zip(told, ("label", "score", "age"), strict=True):
            assert torch.equal(getattr(kept[t], name), x)
            assert torch.allclose(x.double(), getattr(expected, name).double(), atol=1e-6)


@pytest.mark.parametrize("capacity", [None, 300])
def test_one_stream_makes_room_by_a_quarter_and_later_by_an_eighth(capacity: int | None) -> None:
    memory = LabeledMemory(1, MemoryConfig(capacity=capacity))
    h, sizes = torch.ones(1, 1), [0]
    for t in range(3000 if capacity is None else 400):
        memory.write(h, torch.tensor([t]))
        if memory.label.shape[1] != sizes[-1]:
            sizes.append(memory.label.shape[1])
    for before, after in pairwise(sizes):
        more = max(4, before // 8, min(before // 4, 256))
        assert after - before == min(more, (capacity or math.inf) - before)
    assert sizes[-1] == (capacity or sizes[-1]) and len(memory) == (capacity or 3000)
