"""Many streams by kernels: threads, masks, eviction, growth, caches, and what steps keep."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import Recurrent, filled, random_combiner

from labelmem import Adapter, MemoryConfig, StreamBatch
from labelmem.config import NarrowMemoryConfig
from labelmem.errors import InputError
from labelmem.keys import Hidden, Joined
from labelmem.scoring import worth_of

pytest.importorskip("numba")

from labelmem.engines.numba import places, threads
from labelmem.engines.numba.many import ManyStep

N, DIM, LABELS, STEPS = 5, 3, 6, 30


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every thread gets some streams, however little there is to do; as many as torch has."""
    monkeypatch.setattr(threads, "_LEAST", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def adapter(kind: str = "stream", **memory: Any) -> Adapter:
    model = filled(nn.Linear(DIM, LABELS), seed=1)
    config = NarrowMemoryConfig if memory.pop("bits", 0) else MemoryConfig
    options: dict[str, Any] = {"memory": config(**memory)}
    if kind == "recurrent":
        return Adapter(Recurrent(), combiner=0.4, **options)
    if kind == "parts":
        combiner = random_combiner(DIM, kind="stream", rescorer=6, parts=2)
        return Adapter(model, combiner=combiner, key=Joined(Hidden(), Hidden(0.5)), **options)
    partition = kind == "partition"
    combiner = 0.4 if kind == "fixed" else random_combiner(DIM, kind="stream", rescorer=6)
    return Adapter(model, combiner=combiner, partition=partition, **options)


KINDS = ("fixed", "stream", "parts", "partition")
MEMORIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "oldest out": {"capacity": 4, "margin": math.inf},
    "lightest out": {"capacity": 4, "evict": "weight", "decay": 0.7, "margin": 50.0},
    "16 bits": {"bits": 16},
}


def recorded(steps: int = STEPS, new: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs (T, n, d), labels (T, n), some of them the streams' own, and masks (T, n)."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(steps, N, DIM, generator=generator)
    y = torch.randint(LABELS + new, (steps, N), generator=generator)
    return x, y, torch.rand(steps, N, generator=generator) < 0.7


def run(
    batch: StreamBatch, between: Callable[[int, StreamBatch], StreamBatch] | None = None
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """All predictions of a batch and what it keeps in the end; ``between`` may change it."""
    found = []
    for t, (x, y, mask) in enumerate(zip(*recorded(), strict=True)):
        first, probs = batch._now.memory.dim is None, batch.predict(x)
        assert batch.last is not None and isinstance(batch.last, ManyStep) != first
        found.append(probs)
        found += [batch.last.worth(y, top=3).figures, batch.last.theta]  # type: ignore[list-item]
        batch.observe_ids(y, mask)
        batch = batch if between is None else between(t, batch)
    return found, batch.tensors()


def same(a: tuple[list[Tensor], dict[str, Tensor]], b: Any) -> None:
    """The same bits."""
    assert all(torch.equal(x, y) for x, y in zip(a[0], b[0], strict=True))
    assert a[1].keys() == b[1].keys()
    for name, tensor in a[1].items():
        assert torch.equal(tensor, b[1][name]), name


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_no_bit(kind: str, memory: str) -> None:
    found = []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        found.append(run(adapter(kind, **MEMORIES[memory]).streams(N)))
    same(found[0], found[1])
    same(found[0], found[2])


@pytest.mark.parametrize("streams", [1, 2, 3, 7])
def test_ranges_cover_each_stream_once(streams: int) -> None:
    torch.set_num_threads(3)
    seen = np.zeros(streams, np.int64)

    def note(first: int, end: int) -> None:
        seen[first:end] += 1

    threads.spread(note, streams, 1000)
    assert (seen == 1).all()


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_as_specified(kind: str, memory: str) -> None:
    mine = adapter(kind, **MEMORIES[memory]).streams(N)
    theirs = adapter(kind, **MEMORIES[memory])
    theirs.engine = "reference"
    other, atol = theirs.streams(N), 1e-3 if "16" in memory else 1e-5
    for x, y, mask in zip(*recorded(), strict=True):
        torch.testing.assert_close(mine.predict(x), other.predict(x), rtol=0, atol=atol)
        a, b = mine.last, other.last
        assert a is not None and b is not None
        for name in ("theta", "model_probs", "memory_probs"):
            torch.testing.assert_close(getattr(a, name), getattr(b, name), rtol=0, atol=atol)
        mine.observe_ids(y, mask)
        other.observe_ids(y, mask)
    expected = other.tensors()
    for name, tensor in mine.tensors().items():
        if tensor.dtype != torch.int16:  # which may be rounded either way
            torch.testing.assert_close(tensor, expected[name], rtol=1e-4, atol=10 * atol, msg=name)


@pytest.mark.parametrize("kind", [*KINDS, "recurrent"])
def test_a_stream_that_is_masked_out_stays_as_it_is(kind: str) -> None:
    batch = adapter(kind, **MEMORIES["oldest out"]).streams(N)
    for x, y, mask in zip(*recorded(), strict=True):
        batch.look(x)
        before = batch.tensors()
        batch.observe_ids(y, mask)
        for name, now in batch.tensors().items():
            was = before[name][~mask]
            kept = now[~mask][:, : was.shape[1]] if was.ndim > 1 else now[~mask]
            assert not was.numel() or torch.equal(was, kept), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_tables_of_places_change_no_bit(
    kind: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(adapter(kind, **MEMORIES[memory]).streams(N))
    monkeypatch.setattr(places, "_FEW", 1)
    batch = adapter(kind, **MEMORIES[memory]).streams(N)
    same(run(batch), expected)
    rows = batch._now.memory._rows.rows
    assert 0 < rows.table.shape[1] <= 4 * rows.label.shape[1] + 4  # not one place for each label


def drop(t: int, batch: StreamBatch) -> StreamBatch:
    batch._now.memory._rows = None
    return batch


def reload(t: int, batch: StreamBatch) -> StreamBatch:
    """The same streams from what is saved of them."""
    if t % 7 != 3:
        return batch
    other = batch.method.streams(N)
    other._now, other._spaces = batch.method.restore(batch.tensors(), N), batch._spaces
    return other


def copied(t: int, batch: StreamBatch) -> StreamBatch:
    batch._now.memory = copy.deepcopy(batch._now.memory)
    return batch


@pytest.mark.parametrize("few", [1, 1000])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("between", [drop, reload, copied])
def test_what_is_kept_beside_the_memory_can_be_found_anew(
    between: Any, memory: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_FEW", few)
    expected = run(adapter("parts", **MEMORIES[memory]).streams(N))
    same(run(adapter("parts", **MEMORIES[memory]).streams(N), between), expected)


def test_it_is_noticed_when_others_change_the_cells() -> None:
    def scale(t: int, batch: StreamBatch) -> StreamBatch:
        batch._now.memory.v.mul_(0.5)
        batch._now.memory.alpha.add_(1.0)
        return batch

    same(
        run(adapter().streams(N), scale),
        run(adapter().streams(N), lambda t, batch: drop(t, scale(t, batch))),
    )


def test_growing_memories_keep_what_is_known_of_them() -> None:
    batch = adapter("parts", margin=math.inf).streams(N)
    x, y, _ = recorded(40, new=200)
    for t in range(40):
        batch.look(x[t])
        batch.observe_ids(y[t])
        known = batch._now.memory._rows
        if known is None:  # the first cell is written by the reference
            continue
        fresh = copy.deepcopy(batch._now.memory)
        assert fresh._rows is None
        kept, found = known.rows, fresh._seen().rows
        for name in ("known", "size", "table"):
            assert np.array_equal(getattr(kept, name), getattr(found, name)), name
        assert kept.known.shape[2] == batch._now.memory.label.shape[1] < 60


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("asked", [True, False])
def test_reads_stay_as_they_were(memory: str, asked: bool) -> None:
    """Whether or not somebody looked before the cells were written, and however often."""
    names = ("label", "alpha", "weight", "score", "group", "strength", "cosine", "age")
    batches = [adapter("parts", **MEMORIES[memory]).streams(N) for _ in range(2)]
    held, expected = [], []
    for x, y, mask in zip(*recorded(), strict=True):
        mine, theirs = (batch.look(x) for batch in batches)
        assert mine.read is not None and theirs.read is not None  # type: ignore[attr-defined]
        held.append(mine)
        read = theirs.read  # type: ignore[attr-defined]
        told = {name: getattr(read, name).clone() for name in names}
        past = {name: value.clone() for name, value in vars(read.past).items()}
        expected.append((told, past, y, theirs.probs, theirs.worth(y)))
        if asked:
            _ = mine.probs
        for batch in batches:
            batch.observe_ids(y, mask)
    for step, (told, past, y, probs, worth) in zip(held, expected, strict=True):
        read = step.read  # type: ignore[attr-defined]
        for name, value in told.items():
            assert torch.equal(getattr(read, name), value), name
        for name, value in past.items():
            assert torch.equal(getattr(read.past, name), value), name
        assert torch.equal(step.probs, probs)
        assert torch.equal(step.worth(y).figures, worth.figures)


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_label_is_learned_from_what_was_seen(kind: str) -> None:
    """A step that is not of the present state goes the way of the reference."""
    adapters = [adapter(kind) for _ in range(2)]
    adapters[1].engine = "reference"
    x, y, _ = recorded(8)
    batches = [each.streams(N) for each in adapters]
    for batch in batches:
        for t in range(0, 8, 2):
            first, second = batch.look(x[t]), batch.look(x[t + 1])
            batch.method.commit(batch._now, second, y[t + 1].clamp(max=5), None)
            batch.method.commit(batch._now, first, y[t].clamp(max=5), None)
    mine, theirs = (batch.tensors() for batch in batches)
    for name, tensor in theirs.items():
        torch.testing.assert_close(mine[name], tensor, rtol=1e-4, atol=1e-4, msg=name)


def test_a_key_that_is_not_finite_changes_nothing() -> None:
    batch = adapter().streams(N)
    x, y, _ = recorded(3)
    for t in range(2):
        batch.predict(x[t])
        batch.observe_ids(y[t].clamp(max=5))
    step, before = batch.look(x[2]), batch.tensors()
    step.key[1, 0] = torch.nan  # type: ignore[attr-defined, index]
    with pytest.raises(InputError, match="NaN"):
        batch.observe_ids(y[2].clamp(max=5))
    for name, tensor in batch.tensors().items():
        assert torch.equal(tensor, before[name]), name


# ---------------------------------------------------------------- what predictions are worth


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_worth_is_that_of_the_rows(kind: str, made: bool) -> None:
    batch = adapter(kind).streams(N)
    for x, y, mask in zip(*recorded(), strict=True):
        step, widths = batch.look(x), batch.widths
        assert step.lazy or kind == "parts"  # of which the first key comes from the reference
        if made:
            _ = step.probs
        found = step.worth(y, widths, top=4)
        right = worth_of(step.probs, y, widths, top=4)
        assert torch.equal(found.figures[1:3], right.figures[1:3])
        torch.testing.assert_close(found.figures, right.figures, rtol=0, atol=1e-6)
        torch.testing.assert_close(found.probs, right.probs, rtol=0, atol=1e-6)
        there = step.probs.gather(1, found.labels)
        torch.testing.assert_close(there, found.probs, rtol=0, atol=1e-6)
        assert all(len(set(row.tolist())) == 4 for row in found.labels)
        batch.observe_ids(y, mask)


@pytest.mark.parametrize("width", [1, 5, 127, 128, 129, 300])
def test_ranks_of_ties_and_the_best_of_many(width: int) -> None:
    from labelmem.engines.numba.rows import Mixture
    from labelmem.engines.numba.worth import worth_rows

    generator = torch.Generator().manual_seed(width)
    probs = torch.randint(0, 4, (40, width), generator=generator) / 8
    y = torch.randint(-1, width + 2, (40,), generator=generator)
    widths = torch.randint(1, width + 1, (40,), generator=generator)
    probs[torch.arange(width) >= widths[:, None]] = 0
    right = worth_of(probs, y, widths, top=7)
    k = right.labels.shape[1]
    figures, best = np.empty((40, 4), "f"), np.empty((40, k), "f")
    none, labels = np.empty((40, 0), "f"), np.empty((40, k), "q")
    of = Mixture(none, np.empty((40, 0), "q"), np.zeros(40, "q"), none, np.zeros(40, "f"), False)
    given = (probs.numpy(), y.numpy(), widths.numpy(), figures, labels, best)
    worth_rows(0, 40, of, *given)
    assert np.array_equal(figures.T, right.figures.numpy())
    assert np.array_equal(best, right.probs.numpy())
    order = np.lexsort((np.tile(np.arange(width), (40, 1)), -probs.numpy()))[:, :k]
    assert np.array_equal(labels, order)
