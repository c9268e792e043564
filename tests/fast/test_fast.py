"""The short way of one stream on a CPU against the specification, over random streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import DIM, LABELS, Event, configs, events, vectors
from torch import nn
from toys import EVERY_KIND, filled, make_adapter, random_combiner, random_stream, snapshot

from labelmem import LabeledMemory, MemoryConfig, Stream
from labelmem import functional as F
from labelmem.fast import addressable, alone, answer, arrays, once, plainly, uncompiled
from labelmem.fast import cells as fast_cells
from labelmem.fast.label import Cell, step_one
from labelmem.fast.mix import margin_lost, mix_one
from labelmem.reading import MemoryRead

# ---------------------------------------------------------------- whole streams


def both(stream: Stream, other: Stream, x: Any, y: Any) -> float:
    """One step of each, ``other`` by the specification; the largest difference of what they say."""
    mine = stream.predict(x)
    with plainly():
        theirs = other.predict(x)
        other.observe(y)
    stream.observe(y)
    names = ("probs", "theta", "model_probs", "memory_probs")
    pairs = [(getattr(mine, name), getattr(theirs, name)) for name in names]
    assert mine.labels == theirs.labels
    return max(float((a - b).abs().max()) for a, b in pairs if a is not None)


def assert_states_agree(stream: Stream, other: Stream, atol: float) -> None:
    mine, theirs = snapshot(stream), snapshot(other)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            assert torch.allclose(value, theirs[name], rtol=1e-5, atol=atol), name
        elif isinstance(value, torch.Tensor):
            assert torch.equal(value, theirs[name]), name
        else:
            assert value == theirs[name]


@pytest.fixture(params=["numpy", "compiled"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both short ways of one stream, where numba is installed."""
    if request.param == "compiled":
        pytest.importorskip("numba")
    with uncompiled() if request.param == "numpy" else nullcontext():
        yield request.param


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("cells", [1, 2, None])
@pytest.mark.parametrize("capacity", [None, 4])
def test_streams_are_as_specified(
    kind: str, cells: int | None, capacity: int | None, way: str
) -> None:
    memory = MemoryConfig(cells_per_label=cells, capacity=capacity)
    stream, other = (make_adapter(kind, memory).stream() for _ in range(2))
    x, ys = random_stream(3, 24, range(4), ["a", "b", "c"])
    worst = max(both(stream, other, x[t], y) for t, y in enumerate(ys))
    assert worst < 2e-6
    assert_states_agree(stream, other, 1e-5)
    taken = type(stream._state.memory._kept).__name__
    assert taken == ("CompiledCells" if way == "compiled" and cells == 1 else "Kept")


@settings(max_examples=12)
@given(
    config=configs,
    kind=st.sampled_from(EVERY_KIND),
    seed=st.integers(0, 99),
    theta=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_any_stream_is_as_specified(
    config: MemoryConfig, kind: str, seed: int, theta: float
) -> None:
    # Margins that write always or hardly ever: a lead of just the margin may round either way.
    config = replace(config, margin=50.0 if config.margin > 0 else -50.0)
    stream, other = (make_adapter(kind, config).stream() for _ in range(2))
    if kind == "fixed":
        stream.method.combiner = other.method.combiner = theta
    x, ys = random_stream(seed, 15, range(4), ["a", "b"])
    for t, y in enumerate(ys):
        with uncompiled() if seed % 2 else nullcontext():
            assert both(stream, other, x[t], y) < 2e-4


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_labels_that_come_late_are_learned_alike(kind: str, way: str) -> None:
    stream, other = (make_adapter(kind, MemoryConfig()).stream() for _ in range(2))
    x, ys = random_stream(5, 18, range(4), ["a", "b", "c"])
    for t in range(0, len(ys), 3):
        mine = [stream.predict(each) for each in x[t : t + 3]]
        with plainly():
            theirs = [other.predict(each) for each in x[t : t + 3]]
        for i in (1, 0, 2):  # what was predicted first is told in between
            stream.observe(ys[t + i], mine[i])
            with plainly():
                other.observe(ys[t + i], theirs[i])
    assert both(stream, other, x[0], ys[0]) < 2e-6
    assert_states_agree(stream, other, 1e-5)


def test_turning_the_short_way_on_and_off_within_a_stream_changes_nothing(way: str) -> None:
    stream, other = (make_adapter("stream").stream() for _ in range(2))
    x, ys = random_stream(5, 40, range(4), ["a"])
    for t, y in enumerate(ys):
        if t % 3 == 0:
            with plainly():
                seen = stream.predict(x[t]).probs
                stream.observe(y)
        else:
            seen = stream.predict(x[t]).probs
            stream.observe(y)
        with plainly():
            assert torch.allclose(seen, other.predict(x[t]).probs, atol=2e-6)
            other.observe(y)


def test_gradients_and_devices_take_the_long_way() -> None:
    h = torch.zeros(1, 3)
    assert alone(h) and not alone(h.requires_grad_())
    assert not alone(torch.zeros(2, 3)) and not alone(torch.zeros(1, 3, dtype=torch.bfloat16))
    assert not alone(torch.zeros(1, 3, device="meta"))


# ---------------------------------------------------------------- the memory


def memories(config: MemoryConfig, blocks: Any = ()) -> tuple[LabeledMemory, LabeledMemory]:
    kind: dict[str, Any] = {"dtype": torch.float64, "blocks": blocks}
    return LabeledMemory(DIM, config, **kind), LabeledMemory(DIM, config, fast=False, **kind)


def assert_reads_agree(a: MemoryRead, b: MemoryRead) -> None:
    assert torch.equal(a.leads, b.leads) and a.past is not None and b.past is not None
    for name in ("label", "alpha", "group", "age", "weight", "score"):
        assert torch.allclose(getattr(a, name), getattr(b, name), atol=1e-9), name
    leads = a.leads
    for name in ("strength", "cosine"):
        assert torch.allclose(getattr(a, name)[leads], getattr(b, name)[leads], atol=1e-7), name
    for name in ("writes", "age", "since_first", "rates", "cosine", "size"):
        mine, theirs = getattr(a.past, name)[leads], getattr(b.past, name)[leads]
        assert mine.dtype == theirs.dtype and torch.allclose(mine, theirs, atol=1e-7), name


@settings(max_examples=25)
@given(config=configs, stream=events(), probe=vectors, blocks=st.sampled_from([(), (2, 1)]))
def test_cells_are_read_and_written_as_specified(
    config: MemoryConfig, stream: list[Event], probe: list[float], blocks: tuple[int, ...]
) -> None:
    short, long = memories(config, blocks)
    probed = torch.tensor([probe], dtype=torch.float64)
    for event in stream:
        h = torch.tensor([event.h], dtype=torch.float64)
        y, P = torch.tensor([event.y]), event.probs()
        assert torch.equal(short.write(h, y, P), long.write(h, y, P))
        for x in (h, probed):
            assert_reads_agree(short.read(x), long.read(x))
    for name, mine in short.tensors().items():
        assert torch.allclose(mine, long.tensors()[name], atol=1e-9), name


def test_cells_that_cancel_are_added_up_themselves() -> None:
    config = MemoryConfig(lam=0.0, delta=0.0, margin=50.0, cells_per_label=2)
    short, long = memories(config)
    stream = [([1.0, 0.0, 0.0], []), ([-1.0000001, 1e-7, 0.0], [0.0, 1.0])]
    for memory in (short, long):
        for v, P in stream:
            h = torch.tensor([v], dtype=torch.float64)
            memory.write(h, torch.tensor([0]), torch.tensor([P], dtype=torch.float64).view(1, -1))
        memory.write(torch.ones(1, 3, dtype=torch.float64), torch.tensor([1]))
    probe = torch.tensor([[0.3, 0.9, 0.1]], dtype=torch.float64)
    assert short._kept is not None and long._kept is None
    assert_reads_agree(short.read(probe), long.read(probe))


def test_labels_with_very_many_cells_are_read_by_the_specification() -> None:
    config = MemoryConfig(margin=50.0, cells_per_label=None)
    short, long = memories(config)
    x = torch.randn(60, 1, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wrong = torch.tensor([[0.1, 0.5, 0.4]], dtype=torch.float64)
    for t, h in enumerate(x):
        for memory in (short, long):
            memory.write(h, torch.tensor([0 if t % 3 else 3 + t]), wrong)
        assert_reads_agree(short.read(h), long.read(h))
    assert short._kept is not None and short._kept.groups is not None
    assert len(short._kept.groups.crowds) == 1
    again = LabeledMemory(DIM, config, dtype=torch.float64, blocks=())
    again.restore(short.tensors())
    assert_reads_agree(again.read(x[0]), long.read(x[0]))


def test_cells_beyond_the_cache_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = LabeledMemory(DIM, MemoryConfig(margin=50.0))
    x = torch.randn(30, 1, DIM, generator=torch.Generator().manual_seed(0))
    for t, h in enumerate(x):
        memory.write(h, torch.tensor([t]))
    near = memory.read(x[3]).score
    monkeypatch.setattr(fast_cells, "_IN_CACHE", 0)
    assert torch.allclose(memory.read(x[3]).score, near, atol=1e-6)


# ---------------------------------------------------------------- mixture and margin

shares = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@given(
    r=shares,
    s=shares,
    theta=st.sampled_from([0.0, 0.4, 1.0]),
    each=st.booleans(),
    partition=st.booleans(),
)
def test_one_streams_mixture(
    r: list[int], s: list[int], theta: float, each: bool, partition: bool
) -> None:
    width = max(len(r), len(s))
    rows = torch.zeros(2, width, dtype=torch.float64)
    for row, values in zip(rows, (r, s), strict=True):
        row[: len(values)] = torch.tensor(values)
        row /= row.sum().clamp(min=1)
    model, memory = rows[:1], rows[1:]
    gate = torch.linspace(0, 1, width, dtype=torch.float64)[None] if each else theta
    expected = F.mix(F.outside(model, memory) if partition else model, memory, gate)
    names = np.arange(len(s))
    weight = gate[0].numpy() if isinstance(gate, torch.Tensor) else gate
    seen = mix_one(model[0].numpy(), memory[0, : len(s)].numpy(), weight, names, partition)
    assert seen == pytest.approx(expected[0].numpy(), abs=1e-12)


@given(
    P=st.lists(st.integers(0, 4), min_size=0, max_size=LABELS),
    y=st.integers(0, LABELS),
    margin=st.sampled_from([-1.0, 0.0, 1.0, float("inf")]),
)
def test_one_streams_margin(P: list[int], y: int, margin: float) -> None:
    probs = Event([], y, P).probs()
    loss, wrong = F.margin_loss(probs, torch.tensor([y]), margin)
    assert margin_lost(probs[0].numpy(), y, margin) == (bool(loss > 0), bool(wrong))


# ---------------------------------------------------------------- the paper's combiner


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_labels_near_the_background_lose_nothing_but_rounding(kind: Any, scale: float) -> None:
    labels, hidden, steps = 400, 6, 25
    generator = np.random.default_rng(1)

    def drawn(*shape: int) -> Any:
        return scale * generator.normal(size=shape)

    weights = drawn(18, hidden), drawn(18), drawn(18, 2)
    inputs = drawn(steps, 18)
    # Most labels hardly ever get any score, a few get much.
    r = generator.dirichlet(np.full(labels, 0.02), size=steps)
    mu, exact = np.zeros((hidden, labels), kind), np.zeros((hidden, labels))
    worst = rounding = 0.0
    plain = mu.copy()
    for shared, row in zip(inputs, r, strict=True):
        scores = np.stack([row, np.where(row > 0.2, row, 0)])
        scores[:, 0] = 0
        one = Cell(*(w.astype(kind) for w in weights), shared.astype(kind))
        mu, plain = step_one(one, mu, scores.astype(kind)), one(plain, scores.astype(kind))
        exact = Cell(*weights, shared)(exact, scores)
        worst = max(worst, float(np.abs(mu - exact).max()))
        rounding = max(rounding, float(np.abs(plain - exact).max()))
    assert worst <= 3 * rounding + 20 * np.finfo(kind).eps


def test_weights_are_seen_as_they_are_now() -> None:
    combiner = random_combiner(kind="stream")
    seen = arrays(combiner)
    assert seen.keys() == combiner.state_dict().keys()
    with torch.no_grad():
        combiner.theta_outer.add_(1.0)
    assert np.array_equal(arrays(combiner)["theta_outer"], combiner.theta_outer.detach().numpy())
    combiner.double()
    assert arrays(combiner)["theta_outer"].dtype == np.float64
    combiner.theta_outer = filled(nn.ParameterList([torch.zeros(32)]), 3)[0]
    assert np.array_equal(arrays(combiner)["theta_outer"], combiner.theta_outer.detach().numpy())


def test_what_kernels_may_take_from_where_it_lies() -> None:
    x = torch.zeros(4, 3)
    turned = torch.imag(torch.zeros(1, 3, dtype=torch.complex64).conj())
    assert turned.is_neg()  # its bytes are not what it says
    for other in (x.T, x.double(), x[:, :2], nn.Parameter(x), x.clone().requires_grad_(), turned):
        assert not addressable(other)
    assert addressable(x) and addressable(x[1:2])
    for way in (plainly, uncompiled):
        with way():
            assert not addressable(x)


def test_answers_are_tensors_of_their_own() -> None:
    told = [answer(t % 3 > 0) for t in range(600)]
    assert torch.cat(told).tolist() == [t % 3 > 0 for t in range(600)]
    told[1].zero_()
    assert torch.cat(told).tolist() == [t % 3 > 0 and t != 1 for t in range(600)]
    with torch.inference_mode():
        inside = answer(True)
    assert inside.is_inference() and inside.tolist() == [True]
    assert not any(answer(True).is_inference() for _ in range(600))


def test_what_is_found_once_is_kept() -> None:
    class Counter:
        asked = 0

        @once
        def found(self) -> int:
            self.asked += 1
            return self.asked

    counter = Counter()
    assert (counter.found, counter.found, counter.asked) == (1, 1, 1)
    assert isinstance(Counter.found, once)
