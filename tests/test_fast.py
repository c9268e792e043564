"""Compiled steps of one stream on a CPU against the reference, over random streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import configs
from torch import nn
from toys import EVERY_KIND, make_adapter, random_stream, snapshot

from labelmem import MemoryConfig, Stream
from labelmem.fast import addressable, alone, plainly

pytest.importorskip("numba")


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


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("cells", [1, 2, None])
@pytest.mark.parametrize("capacity", [None, 4])
def test_streams_are_as_specified(kind: str, cells: int | None, capacity: int | None) -> None:
    memory = MemoryConfig(cells_per_label=cells, capacity=capacity)
    stream, other = (make_adapter(kind, memory).stream() for _ in range(2))
    x, ys = random_stream(3, 24, range(4), ["a", "b", "c"])
    worst = max(both(stream, other, x[t], y) for t, y in enumerate(ys))
    assert worst < 2e-6
    assert_states_agree(stream, other, 1e-5)


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
        assert both(stream, other, x[t], y) < 2e-4


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_labels_that_come_late_are_learned_alike(kind: str, cells: int) -> None:
    memory = MemoryConfig(cells_per_label=cells)
    stream, other = (make_adapter(kind, memory).stream() for _ in range(2))
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


def test_turning_kernels_on_and_off_within_a_stream_changes_nothing() -> None:
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


def test_gradients_and_other_devices_and_types_take_no_kernels() -> None:
    h = torch.zeros(1, 3)
    assert alone(h) and not alone(h.requires_grad_())
    assert not alone(torch.zeros(2, 3)) and not alone(torch.zeros(1, 3, dtype=torch.float64))
    assert not alone(torch.zeros(1, 3, device="meta"))


def test_what_kernels_may_take_from_where_it_lies() -> None:
    x = torch.zeros(4, 3)
    turned = torch.imag(torch.zeros(1, 3, dtype=torch.complex64).conj())
    assert turned.is_neg()  # its bytes are not what it says
    for other in (x.T, x.double(), x[:, :2], nn.Parameter(x), x.clone().requires_grad_(), turned):
        assert not addressable(other)
    assert addressable(x) and addressable(x[1:2])
    with plainly():
        assert not addressable(x)
