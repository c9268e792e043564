"""One stream: what a prediction holds, purity, late labels, saving, and random streams."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slow import OracleStream
from strategies import configs, vectors
from toys import (
    Bare,
    assert_same,
    make_adapter,
    random_combiner,
    random_stream,
    run,
    snapshot,
    unchanged,
)

from labelmem import Adapter, MemoryConfig, Stream
from labelmem.errors import ObserveError

NEW = ["emu", ("place", 3)]


def warmed(adapter: Adapter, steps: int = 25, seed: int = 1) -> Stream:
    stream = adapter.stream()
    run(stream, *random_stream(seed, steps, range(4), NEW))
    return stream


# ---------------------------------------------------------------- predictions


def test_a_prediction_lists_model_labels_then_new_ones_as_first_observed(adapter: Adapter) -> None:
    stream = adapter.stream()
    x = torch.ones(3)
    for y in ("owl", 2, "emu", "owl", 0):
        stream.predict(x)
        stream.observe(y)
    p = stream.predict(x)
    assert p.labels == stream.labels == [0, 1, 2, 3, "owl", "emu"]
    assert p.label == p.labels[int(p.probs.argmax())]
    assert p.top(2)[0] == (p.label, pytest.approx(float(p.probs.max())))
    assert len(p.top(99)) == 6 and repr(p).startswith(f"Prediction({p.label!r}")
    for part in (p.probs, p.theta, p.model_probs, p.memory_probs):
        assert part is not None and part.shape == (6,)
        assert part.is_floating_point() and not part.requires_grad
    for part in (p.probs, p.model_probs, p.memory_probs):
        assert float(part.sum()) == pytest.approx(1.0, abs=1e-6)
    assert p.model_probs[4:].tolist() == [0.0, 0.0]


def test_a_prediction_does_not_change_later(adapter: Adapter) -> None:
    stream = warmed(adapter)
    p = stream.predict(torch.ones(3))
    kept = [t.clone() for t in (p.probs, p.theta, p.model_probs, p.memory_probs)]
    labels, why = p.labels, repr(stream.explain(p))
    for y in ("late", 0, 1, "later"):
        stream.predict(torch.ones(3))
        stream.observe(y)
    for was, now in zip(kept, (p.probs, p.theta, p.model_probs, p.memory_probs), strict=True):
        assert torch.equal(was, now)
    assert p.labels == labels and repr(stream.explain(p)) == why


def test_the_input_is_copied() -> None:
    adapter = Adapter(Bare())
    stream, other = adapter.stream(), adapter.stream()
    buffer = torch.tensor([1.0, -2.0, 0.5])
    other.predict(buffer.clone())
    p = stream.predict(buffer)
    buffer.fill_(100.0)
    stream.observe("emu", prediction=p)
    other.observe("emu")
    assert_same(snapshot(stream), snapshot(other))


def test_few_shot_starts_with_nothing_and_follows_the_memory() -> None:
    stream = Adapter(torch.nn.Identity(), labels=()).stream()
    p = stream.predict([1.0, 0.0])
    assert (p.label, p.labels, p.probs.tolist(), p.theta) == (None, [], [], None)
    assert p.top() == [] and "no label" in repr(p)
    stream.observe("a")
    p = stream.predict([0.0, 1.0])
    assert (p.label, p.probs.tolist(), p.model_probs) == ("a", [1.0], None)
    stream.observe("b")
    p = stream.predict([0.0, 1.0])
    assert p.label == "b" and p.probs.tolist() == pytest.approx(
        [1 / (1 + math.exp(5)), 1 / (1 + math.exp(-5))], abs=1e-6
    )


def test_scalars_of_torch_and_numpy_are_the_label_they_hold() -> None:
    np = pytest.importorskip("numpy")
    stream = Adapter(Bare()).stream()
    for y in (torch.tensor(1), np.int64(1), np.array(1), 1.0, True):
        stream.predict([1.0, 0.0, 0.0])
        stream.observe(y)
    assert stream.labels == [0, 1, 2]
    for y in ("1", np.str_("1"), 1.5, torch.tensor(1.5), (1,)):
        stream.predict([1.0, 0.0, 0.0])
        stream.observe(y)
    assert stream.labels == [0, 1, 2, "1", 1.5, (1,)]


def test_streams_share_nothing(adapter: Adapter) -> None:
    x, ys = random_stream(3, 20, range(4), NEW)
    alone = run(adapter.stream(), x, ys)
    stream, noisy = adapter.stream(), adapter.stream()
    for t, y in enumerate(ys):
        noisy.predict(5 * x[t])
        noisy.observe(("only here", t))
        assert torch.equal(stream.predict(x[t]).probs, alone[t])
        stream.observe(y)
    assert stream.labels == [0, 1, 2, 3, *NEW] and len(noisy.labels) == 24


def test_reset_is_a_new_stream(adapter: Adapter) -> None:
    stream = warmed(adapter)
    before = stream.predict(torch.ones(3))
    stream.reset()
    assert_same(snapshot(stream), snapshot(adapter.stream()))
    with pytest.raises(ObserveError):
        stream.observe(0)
    with pytest.raises(ObserveError, match="before a reset"):
        stream.observe(0, prediction=before)


# ---------------------------------------------------------------- late labels


def test_a_very_late_label_in_a_stream_with_many_new_ones(adapter: Adapter) -> None:
    # The first prediction knows four labels; by the time its label comes the stream knows nine.
    stream = adapter.stream()
    first = stream.predict(torch.ones(3))
    second = stream.predict(-torch.ones(3))
    for t in range(12):
        stream.predict(torch.tensor([1.0, float(t % 5), -1.0]))
        stream.observe(f"new {t % 5}")
    stream.observe("later still", prediction=first)
    stream.observe("new 3", prediction=second)
    assert stream.labels[-1] == "later still" and stream.observed == 14
    assert float(stream.predict(torch.ones(3)).probs.sum()) == pytest.approx(1.0, abs=1e-6)


# ---------------------------------------------------------------- saving


def test_a_saved_stream_continues_elsewhere_bit_for_bit(kind: str, tmp_path: Path) -> None:
    x, ys = random_stream(6, 60, range(4), [*NEW, 2.5, b"bytes", frozenset({1, "a"}), -7])
    stream = make_adapter(kind).stream()
    for t, y in enumerate(ys):
        if t in (0, 1, 13, 59):
            stream.save(tmp_path / "stream")
            loaded = make_adapter(kind).load_stream(tmp_path / "stream")
            assert_same(snapshot(loaded), snapshot(stream))
            rest = slice(t, t + 12)
            for a, b in zip(
                run(loaded, x[rest], ys[rest]), ahead(stream, x, ys, rest), strict=True
            ):
                assert torch.equal(a, b)
        stream.predict(x[t])
        stream.observe(y)
    stream.save(tmp_path / "stream")
    loaded = make_adapter(kind).load_stream(tmp_path / "stream")
    assert [(type(y), y) for y in loaded.labels] == [(type(y), y) for y in stream.labels]


def ahead(stream: Stream, x: Any, ys: list[Any], rest: slice) -> list[Any]:
    """What the original stream itself says next, run on a copy of its live state."""
    memo = {id(stream.method): stream.method}
    return run(copy.deepcopy(stream, memo), x[rest], ys[rest])


def test_a_pending_prediction_is_not_saved_and_can_still_be_observed(tmp_path: Path) -> None:
    adapter = make_adapter("dense")
    stream = warmed(adapter)
    stream.predict(torch.ones(3))
    with unchanged(stream):
        stream.save(tmp_path / "s")
    stream.observe(1)
    with pytest.raises(ObserveError):
        adapter.load_stream(tmp_path / "s").observe(1)


# ---------------------------------------------------------------- random streams

Steps = list[tuple[list[float], Any]]
steps = st.lists(st.tuples(vectors, st.sampled_from([0, 1, 2, "x", "y", "z"])), max_size=18)
mixtures = st.sampled_from([0.0, 0.3, 1.0, "combiner"])


def any_adapter(config: MemoryConfig, mixture: Any) -> Adapter:
    combiner = random_combiner(dim=3) if mixture == "combiner" else mixture
    return Adapter(Bare().double(), memory=config, combiner=combiner)


def near_a_threshold(P: list[float], index: int | None, margin: float) -> bool:
    """Whether rounding may decide: P(y) and its best rival are all but tied, or at the margin."""
    own = P[index] if index is not None else 0.0
    other = max([p for i, p in enumerate(P) if i != index], default=0.0)
    if own <= 0 or other <= 0:
        return False
    lead = math.log(own / other)
    return abs(lead) < 1e-9 or abs(lead - margin) < 1e-9


@given(config=configs, mixture=mixtures, stream_of=steps)
def test_random_streams_follow_the_oracle(
    config: MemoryConfig, mixture: Any, stream_of: Steps
) -> None:
    adapter = any_adapter(config, mixture)
    stream, oracle = adapter.stream(), OracleStream.like(adapter)
    for h, y in stream_of:
        x = torch.tensor(h, dtype=torch.float64)
        p, expected = stream.predict(x), oracle.predict(x)
        assert p.probs.tolist() == pytest.approx(expected["P"], abs=1e-8)
        if near_a_threshold(expected["P"], stream.space.find(y), config.margin):
            return
        stream.observe(y)
        oracle.observe(y)


@given(config=configs, mixture=mixtures, stream_of=steps)
def test_random_streams_keep_the_promises(
    config: MemoryConfig, mixture: Any, stream_of: Steps
) -> None:
    stream = any_adapter(config, mixture).stream()
    for h, y in stream_of:
        with unchanged(stream):
            p = stream.predict(h)
            assert torch.equal(stream.predict(h).probs, p.probs)
        assert bool((p.probs >= 0).all()) and float(p.probs.sum()) == pytest.approx(1.0)
        before = snapshot(stream)
        index = stream.space.find(y)
        stream.observe(y)
        own = 0.0 if index is None else float(p.probs[index])
        other = max(float(q) for i, q in enumerate(p.probs) if i != index)
        if own > 0 and (other == 0 or math.log(own / other) > config.margin + 1e-9):
            for name in ("v", "alpha", "label", "written", "born", "used"):  # the loss was 0
                assert torch.equal(before[f"memory.{name}"], snapshot(stream)[f"memory.{name}"])
        labels = snapshot(stream)["memory.label"][0].tolist()
        assert config.capacity is None or len(labels) <= config.capacity
        if config.cells_per_label is not None:
            assert all(labels.count(i) <= config.cells_per_label for i in labels)
