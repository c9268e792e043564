"""The paper's combiner a stretch of steps at once, against the replay step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import Tensor
from toys import Recurrent, Stateless, filled, random_combiner, random_stream

from labelmem import Adapter, Combiner, LabeledMemory, MemoryConfig
from labelmem.combiner import LabelCombiner
from labelmem.config import IndexedMemoryConfig
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel
from labelmem.online import Recorded
from labelmem.recording import lockstep_batches
from labelmem.replay import Features, record, replay
from labelmem.training import FitResult, _stretches
from labelmem.unrolling.cells import Cells, Written, places_of
from labelmem.unrolling.label import can_stretch, stretches
from labelmem.unrolling.theta import thetas

ALWAYS = MemoryConfig(margin=math.inf)
Passes = Callable[[], Iterator[tuple[Tensor, int]]]


def recorded(count: int = 6, new: tuple[str, ...] = ("emu", "owl")) -> list[Recorded]:
    return [random_stream(i, 5 + 3 * i, range(4), new) for i in range(count)]


def recorded_features(adapter: Adapter, streams: list[Recorded]) -> Features:
    (batch,) = lockstep_batches(streams, adapter.known, 99, adapter.device, adapter.dtype)
    return record(adapter, batch)


def passed(adapter: Adapter, batch: Passes) -> tuple[list[float], list[int], list[Tensor]]:
    """Losses and tokens of each stretch, and the sum of their gradients."""
    assert isinstance(adapter.combiner, Combiner)
    adapter.combiner.zero_grad()
    losses, tokens = [], []
    for loss, count in batch():
        torch.autograd.backward(loss)
        losses.append(loss.item())
        tokens.append(count)
    gradients = [p.grad for p in adapter.combiner.parameters() if p.grad is not None]
    return losses, tokens, [g.clone() for g in gradients]


def assert_as_replayed(adapter: Adapter, features: Features, fast: Passes, truncate: int) -> None:
    with plainly():
        slow = passed(adapter, partial(_stretches, partial(replay, adapter, features), truncate))
    found = passed(adapter, fast)
    assert found[0] == pytest.approx(slow[0], rel=1e-5, abs=1e-5)
    assert found[1] == slow[1]
    for mine, theirs in zip(found[2], slow[2], strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    assert any(bool((g.abs() > 1e-3).any()) for g in slow[2])


@pytest.mark.parametrize("margin", [math.inf, 1.0, 0.0, -1.0])
@pytest.mark.parametrize("truncate", [1, 4, 99])
def test_losses_and_gradients_are_those_of_the_replay(margin: float, truncate: int) -> None:
    memory = MemoryConfig(margin=margin, lam=2.0, delta=1.5)
    adapter = Adapter(Recurrent(), memory=memory, combiner=random_combiner())
    features = recorded_features(adapter, recorded())
    assert_as_replayed(adapter, features, stretches(adapter, features, truncate), truncate)


@pytest.mark.parametrize("decay", [1.0, 0.9])
@pytest.mark.parametrize("partition", [False, True])
def test_keys_in_parts_and_divided_labels(partition: bool, decay: float) -> None:
    torch.manual_seed(0)
    key = Joined(RecentTokens(dim=8, pair=True), Hidden(0.3))
    adapter = Adapter(
        GRUModel(labels=6, dim=4),
        memory=MemoryConfig(margin=0.5, decay=decay),
        combiner=random_combiner(4),
        key=key,
        partition=partition,
    )
    g = torch.Generator().manual_seed(0)
    streams: list[Recorded] = []
    for length in (3, 14, 9):
        y = torch.randint(0, 6, (length,), generator=g)
        streams.append((torch.cat([torch.tensor([6]), y[:-1]]), y))
    features = recorded_features(adapter, streams)
    assert_as_replayed(adapter, features, stretches(adapter, features, 5), 5)


def test_in_double_precision_they_are_the_same_to_many_digits() -> None:
    adapter = Adapter(Stateless().double(), combiner=random_combiner().double())
    features = recorded_features(adapter, recorded(3))
    truth = partial(_stretches, partial(replay, adapter, features), 6)
    slow, fast = passed(adapter, truth), passed(adapter, stretches(adapter, features, 6))
    assert fast[0] == pytest.approx(slow[0], rel=1e-12)
    assert all(torch.allclose(a, b, rtol=1e-9) for a, b in zip(fast[2], slow[2], strict=True))


def test_what_an_earlier_pass_found_is_only_a_guess() -> None:
    combiner = random_combiner()
    adapter = Adapter(Recurrent(), memory=MemoryConfig(margin=0.3), combiner=combiner)
    features = recorded_features(adapter, recorded())
    fast = stretches(adapter, features, 7)
    for seed in range(3):  # other weights, other writes
        filled(combiner, seed, scale=2.0)
        assert_as_replayed(adapter, features, fast, 7)


def test_stretches_read_what_a_memory_reads_step_by_step() -> None:
    g = torch.Generator().manual_seed(0)
    key = torch.randn(3, 20, 4, generator=g)
    key[0, 3] = 0.0  # no direction, so no cosine
    key[1, 5] = -key[1, 4]
    y = torch.randint(0, 5, (3, 20), generator=g)
    y[1, 4:6] = 2  # a cell that is written and taken back
    writes = torch.rand(3, 20, generator=g) < 0.6
    memory = LabeledMemory(4, ALWAYS, streams=3, fast=False)
    place, names = places_of(y)
    cells = Cells.empty(key, names.shape[1])
    assert torch.equal(names.gather(1, place), y)
    for first, stop in ((0, 1), (1, 9), (9, 20)):
        part = slice(first, stop)
        read = Written.by(cells, ALWAYS, key[:, part], place[:, part], writes[:, part])
        dense = torch.zeros(3, stop - first, 5)
        dense.scatter_add_(2, names[:, None].expand(-1, stop - first, -1), read.scores())
        for t in range(first, stop):
            expected = memory.read(key[:, t]).scores(5)
            torch.testing.assert_close(dense[:, t - first], expected, rtol=1e-5, atol=1e-6)
            memory.write(key[:, t], y[:, t], None, writes[:, t])
        cells = read.after()


def test_blocks_of_labels_and_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    combiner = random_combiner(hidden=3)
    assert isinstance(combiner, LabelCombiner)
    g = torch.Generator().manual_seed(0)
    mu, r, s = (torch.randn(shape, generator=g) for shape in ((2, 7, 3), (2, 4, 7), (2, 4, 7)))
    shared = torch.randn(2, 4, 9, generator=g).requires_grad_()
    by = torch.randn(2, 4, 7, generator=g)
    found = []
    with plainly():
        for numbers in (1, 60, 2**18):
            monkeypatch.setattr("labelmem.unrolling.theta._NUMBERS", {"cpu": numbers})
            theta, end = thetas(combiner, mu, r, s, shared)
            weights = [shared, combiner.weight_mu, combiner.bias_theta]
            found.append([theta, end, *torch.autograd.grad((theta * by).sum(), weights)])
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("labels", "hidden"), [(300, 16), (5, 3), (128, 5)])
def test_compiled_steps_and_their_gradients(labels: int, hidden: int) -> None:
    pytest.importorskip("numba")
    combiner = random_combiner(hidden=hidden)
    assert isinstance(combiner, LabelCombiner)
    g = torch.Generator().manual_seed(0)
    mu, r, s, by = (
        torch.randn(shape, generator=g)
        for shape in ((2, labels, hidden), (2, 4, labels), (2, 4, labels), (2, 4, labels))
    )
    shared = torch.randn(2, 4, 3 * hidden, generator=g).requires_grad_()
    weights = [shared, *combiner.cell_weights()]
    found = []
    for way in (nullcontext(), plainly()):
        with way:
            theta, end = thetas(combiner, mu, r, s, shared)
            found.append([theta, end, *torch.autograd.grad((theta * by).sum(), weights)])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_training_goes_the_same_way() -> None:
    def fitted() -> tuple[FitResult, Adapter]:
        combiner = Combiner(kind="label", hidden=4, theta=0.3)
        adapter = Adapter(Stateless(), memory=MemoryConfig(margin=0.5), combiner=combiner)
        streams, options = recorded(12), {"epochs": 2, "batch_size": 4, "truncate": 5, "lr": 0.05}
        return adapter.fit(streams[3:], validation=streams[:3], **options), adapter

    fast, mine = fitted()
    with plainly():
        slow, theirs = fitted()
    assert fast.before == pytest.approx(slow.before, abs=1e-5)
    assert fast.epochs == pytest.approx(slow.epochs, abs=1e-4)
    assert fast.best < fast.before
    assert isinstance(mine.combiner, Combiner) and isinstance(theirs.combiner, Combiner)
    for a, b in zip(mine.combiner.parameters(), theirs.combiner.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-3)


def test_only_what_can_be_taken_at_once_is() -> None:
    label = Combiner(kind="label")
    assert can_stretch(label, ALWAYS) and can_stretch(label, MemoryConfig())
    assert not can_stretch(Combiner(kind="label", active_threshold=0.1), ALWAYS)
    assert not can_stretch(Combiner(kind="stream"), ALWAYS) and not can_stretch(0.5, ALWAYS)
    for memory in (
        MemoryConfig(cells_per_label=2),
        MemoryConfig(capacity=3),
        IndexedMemoryConfig(),
    ):
        assert not can_stretch(label, memory)
    with plainly():
        assert not can_stretch(label, ALWAYS)
