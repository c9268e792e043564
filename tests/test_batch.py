"""Lockstep batches: masks, labels by name and by id, and what waits for its labels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from toys import Bare, make_adapter, random_stream, snapshot

from labelmem import Adapter
from labelmem.errors import ConfigError, ObserveError


@given(
    masks=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=10),
    name=st.sampled_from(["fixed", "dense", "sparse", "recurrent dense"]),
)
def test_a_masked_stream_is_left_alone_to_the_bit(masks: list[Any], name: str) -> None:
    batch = make_adapter(name).streams(3)
    x, ys = random_stream(30, 3 * len(masks) + 3, range(4), ["emu", "owl"])
    for t, mask in enumerate(masks):
        before = snapshot(batch)
        rows = slice(3 * t, 3 * t + 3)
        batch.predict(x[rows])
        batch.observe(ys[rows], mask=list(mask))
        after = snapshot(batch)
        for n in range(3):
            if not mask[n]:
                assert_same_row(before, after, n)
                assert before["labels"][n] == after["labels"][n]


def assert_same_row(before: dict[str, Any], after: dict[str, Any], n: int) -> None:
    cells = int(before["memory.used"][n])
    for name, tensor in before.items():
        if not isinstance(tensor, Tensor):
            continue
        was, now = tensor[n], after[name][n]
        if name.startswith("memory.") and name not in ("memory.used", "memory.time"):
            was, now = was[:cells], now[:cells]  # the rest belongs to no cell
        elif name.startswith("combiner.") and name != "combiner.missed":
            now = now[: len(was)]  # the rest was added for other streams
        assert torch.equal(was, now), name


def test_labels_may_be_a_tensor_a_list_or_an_array() -> None:
    np = pytest.importorskip("numpy")
    adapter = Adapter(Bare())
    x = torch.eye(3)
    forms = ([2, 0, 7], torch.tensor([2, 0, 7]), np.array([2, 0, 7]), (2, 0, torch.tensor(7)))
    results = []
    for form in forms:
        batch = adapter.streams(3)
        batch.predict(x)
        batch.observe(form)
        assert [batch.labels(n)[3:] for n in range(3)] == [[], [], [7]]
        results.append(batch.predict(x))
    assert all(torch.equal(result, results[0]) for result in results)


def test_a_tensor_of_fractions_means_what_it_means_to_one_stream() -> None:
    adapter = Adapter(Bare())
    stream, batch = adapter.stream(), adapter.streams(1)
    stream.predict([1.0, 0.0, 0.0])
    batch.predict([[1.0, 0.0, 0.0]])
    stream.observe(1.5)
    batch.observe(torch.tensor([1.5]))
    assert batch.labels(0) == stream.labels == [0, 1, 2, 1.5]


def test_named_labels_are_resolved_in_each_stream() -> None:
    batch = Adapter(Bare(), labels=["a", "b", "c"]).streams(2)
    for Y in (["z", "a"], ["q", "q"], ["z", "z"]):
        batch.predict(torch.eye(3)[:2])
        batch.observe(Y)
    assert batch.labels(0) == ["a", "b", "c", "z", "q"]
    assert batch.labels(1) == ["a", "b", "c", "q", "z"]
    assert batch.width == 5 and len(batch) == 2


def test_ids_number_new_labels_for_replay() -> None:
    adapter = make_adapter("dense")
    named, numbered = adapter.streams(2), adapter.streams(2)
    x = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(1))
    ids = [[0, 4], [4, 4], [1, 5], [5, 0], [4, 5], [2, 3]]
    for t, y in enumerate(ids):
        a, b = named.predict(x[t]), numbered.predict(x[t])
        assert torch.equal(a, b)
        named.observe([f"label {i}" if i > 3 else i for i in y])
        numbered.observe_ids(torch.tensor(y))
    assert [len(numbered.labels(n)) for n in (0, 1)] == [6, 6]


def test_what_waits_for_its_labels_can_be_looked_at() -> None:
    batch = make_adapter("dense").streams(2)
    assert batch.last is None
    P = batch.predict(torch.ones(2, 3))
    assert batch.last is not None and torch.equal(batch.last.probs, P)
    assert batch.last.theta is not None and batch.last.theta.shape == P.shape
    batch.observe([0, 1])
    assert batch.last is None


def test_what_is_remembered_can_be_looked_at_and_is_a_copy(adapter: Adapter) -> None:
    batch, stream, x = adapter.streams(1), adapter.stream(), torch.ones(3)
    for y in ("emu", 1):
        batch.predict(x[None])
        batch.observe([y])
        stream.predict(x)
        stream.observe(y)
    with torch.inference_mode():
        kept, expected = batch.tensors(), stream.tensors()
    assert kept.keys() == expected.keys()
    for name, tensor in kept.items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-5, msg=name)
        assert not tensor.requires_grad and not tensor.is_inference()
    before = batch.predict(x[None]).clone()
    for tensor in kept.values():
        tensor.zero_()
    assert torch.equal(batch.predict(x[None]), before)


def test_observe_needs_a_prediction_and_reset_forgets(adapter: Adapter) -> None:
    batch = adapter.streams(2)
    with pytest.raises(ObserveError, match="call predict"):
        batch.observe([0, 1])
    batch.predict(torch.ones(2, 3))
    batch.observe(["emu", 1])
    with pytest.raises(ObserveError, match="call predict"):
        batch.observe([0, 1])
    batch.reset()
    fresh = adapter.streams(2)
    assert batch.labels(0) == fresh.labels(0)
    assert torch.equal(batch.predict(torch.ones(2, 3)), fresh.predict(torch.ones(2, 3)))


def test_there_is_no_batch_of_no_streams() -> None:
    for n in (0, -1):
        with pytest.raises(ConfigError, match=f"asked for {n} streams"):
            Adapter(Bare()).streams(n)
