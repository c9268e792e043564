"""Explanations against the oracle's own shares, and what they say when there is little to say."""

from __future__ import annotations

import pytest
import torch
from oracle.memory import cosine
from slow import OracleStream, softmax
from toys import KINDS, Bare, make_adapter, random_stream

from labelmem import Adapter, MemoryConfig
from labelmem.errors import InputError, ObserveError


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_equations_2_to_5(kind: str) -> None:
    adapter = make_adapter(kind, MemoryConfig(cells_per_label=3, capacity=9))
    stream, oracle = adapter.stream(), OracleStream.like(adapter)
    x, ys = random_stream(1, 40, range(4), ["emu", "owl"])
    for t, y in enumerate(ys):
        p, expected = stream.predict(x[t]), oracle.predict(x[t])
        for index, label in enumerate(p.labels):
            why = stream.explain(p, label)
            theta, s = expected["theta"][index], expected["s"][index]
            r = float(p.model_probs[index])
            assert why.label == label
            assert why.probability == pytest.approx(expected["P"][index], abs=1e-5)
            assert why.theta == pytest.approx(theta, abs=1e-5)
            assert why.model_share + why.memory_share == pytest.approx(1.0)
            voices = (1 - theta) * r + theta * s
            assert why.memory_share == pytest.approx(theta * s / voices if voices else 0, abs=1e-4)
        compare_cells(stream.explain(p), oracle)
        stream.observe(y)
        oracle.observe(y)


def compare_cells(why: object, oracle: OracleStream) -> None:
    """Nine cells at most, so all of them are told."""
    memory, h = oracle.lmn.memory, oracle.lmn.latest.h
    scores = memory.read(h)
    expected = []
    for label in scores:
        cells = memory.cells_of(label)
        weights = softmax([memory.config.lam * cosine(h, cell.v) for cell in cells])
        for weight, cell in zip(weights, cells, strict=True):
            expected.append((str(label), weight, cell.alpha, weight * scores[label]))
    seen = [(str(c.label), c.weight, c.alpha, c.share) for c in why]
    assert [share for *_, share in seen] == sorted((s for *_, s in seen), reverse=True)
    assert sum(share for *_, share in seen) == pytest.approx(1.0 if expected else 0.0, abs=1e-5)
    for a, b in zip(sorted(seen), sorted(expected), strict=True):
        assert a[0] == b[0] and a[1:] == pytest.approx(b[1:], abs=1e-4)


def test_the_predicted_label_is_explained_by_default() -> None:
    stream = Adapter(Bare(), labels=["a", "b", "c"], combiner=0.5).stream()
    for y in ("z", "b", "z"):
        stream.predict([1.0, 0.5, 0.0])
        stream.observe(y)
    p = stream.predict([1.0, 0.5, 0.0])
    why = stream.explain(p)
    assert why.label == p.label and why == stream.explain(p, p.label)
    assert {cell.label for cell in why} == {"z", "b"} and len(why) == 2
    assert why != stream.explain(p, "a")


def test_an_empty_memory_leaves_all_to_the_model() -> None:
    for theta in (0.5, 1.0):
        stream = Adapter(Bare(), combiner=theta).stream()
        why = stream.explain(stream.predict([1.0, 0.0, 0.0]))
        assert (why.model_share, why.memory_share, why.cells) == (1.0, 0.0, ())


def test_few_shot_leaves_all_to_the_memory() -> None:
    stream = Adapter(torch.nn.Identity(), labels=()).stream()
    with pytest.raises(InputError, match="not known"):
        stream.explain(stream.predict([1.0, 0.0]))
    stream.observe("a")
    why = stream.explain(stream.predict([1.0, 0.0]))
    assert (why.label, why.theta, why.model_share, why.memory_share) == ("a", None, 0.0, 1.0)
    assert "theta" not in repr(why)


def test_many_cells_are_cut_to_the_loudest_and_those_of_the_label() -> None:
    stream = Adapter(Bare(), combiner=0.5).stream()
    for i in range(30):
        stream.predict([1.0, i / 10, 0.0])
        stream.observe(f"new {i}")
    p = stream.predict([1.0, 0.0, 0.0])
    shares = [cell.share for cell in stream.explain(p, "new 29")]
    assert len(shares) == 11 and shares == sorted(shares, reverse=True)
    assert "new 29" in [cell.label for cell in stream.explain(p, "new 29")]


def test_only_what_the_prediction_knew_can_be_explained() -> None:
    adapter = Adapter(Bare(), combiner=0.5)
    stream = adapter.stream()
    p = stream.predict([1.0, 0.0, 0.0])
    stream.observe("later")
    for label in ("later", "never"):
        with pytest.raises(InputError, match=f"'{label}' was not known when the prediction"):
            stream.explain(p, label)
    with pytest.raises(InputError, match="cannot be hashed"):
        stream.explain(p, ["later"])
    with pytest.raises(ObserveError, match="another stream"):
        adapter.stream().explain(p)
