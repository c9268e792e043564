"""Compiled steps of the default form against the reference, over random streams."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelmem import Adapter, MemoryConfig, Prediction, Stream
from labelmem.errors import InputError
from labelmem.fast import plainly
from labelmem.logit_memory import LogitMemory, LogitMemoryOptions
from labelmem.logit_memory.user import User

pytest.importorskip("numba")

from labelmem.engines.numba.logit.user import CompiledUser, fits

VOICES = ("probs", "model_probs", "memory_probs")


@dataclass(frozen=True)
class World:
    """A model and a stream around some centres; labels above those of the model are new."""

    labels: int = 8
    new: int = 4
    dim: int = 6
    steps: int = 60
    capacity: int | None = None
    size: float = 1.0
    sure: float = 1.0
    wrong: float = 0.0
    primed: bool = False
    bias: bool = True
    zeros: bool = False
    seed: int = 0

    def adapter(self) -> Adapter:
        torch.manual_seed(self.seed)
        model = nn.Linear(self.dim, self.labels, bias=self.bias)
        with torch.no_grad():
            model.weight.mul_(self.sure / self.size)
        memory = None if self.capacity is None else MemoryConfig(capacity=self.capacity)
        adapter = Adapter(model, memory=memory)
        if self.primed:
            x, y = self.stream(known=True)
            adapter.prime(torch.stack(x), y)
        return adapter

    def stream(self, known: bool = False) -> tuple[list[Tensor], list[Any]]:
        g = torch.Generator().manual_seed(self.seed + 1)
        shown = min(self.labels, 30)
        kinds = shown if known else shown + self.new
        centres = torch.randn(shown + self.new, self.dim, generator=g)
        y = torch.randint(kinds, (self.steps,), generator=g)
        x = self.size * (centres[y] + 0.5 * torch.randn(self.steps, self.dim, generator=g))
        if self.zeros:
            x[::3] = 0
        off = torch.rand(self.steps, generator=g) < self.wrong
        said = torch.where(off, torch.randint(kinds, (self.steps,), generator=g), y).tolist()
        return list(x), [k if k < shown else f"new {k}" for k in said]


WORLDS = {
    "usual": World(),
    "three labels": World(labels=3, new=0),
    "many new": World(labels=5, new=20, steps=90),
    "more than are listed": World(labels=70, dim=12, steps=90),
    "ten thousand": World(labels=10_000, dim=16, steps=40),
    "full": World(capacity=7, steps=90),
    "full and many": World(labels=500, dim=9, capacity=12, steps=80),
    "primed": World(primed=True),
    "wrong labels": World(wrong=0.3, steps=80),
    "too sure": World(sure=30.0, labels=50, dim=16),
    "shy": World(sure=0.3),
    "tiny": World(size=1e-12),
    "huge": World(size=1e12),
    "zeros": World(zeros=True),
    "one number": World(dim=1),
    "long": World(labels=40, new=8, steps=400, seed=3),
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def world(request: pytest.FixtureRequest) -> Any:
    return request.param


def compiled(stream: Stream) -> bool:
    return isinstance(stream._state.users[0], CompiledUser)


def same(a: Stream, b: Stream) -> bool:
    mine, theirs = a.tensors(), b.tensors()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)


def near(p: Prediction, q: Prediction) -> None:
    for name in VOICES:
        mine, theirs = getattr(p, name), getattr(q, name)
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        assert torch.allclose(mine, theirs, atol=1e-5, rtol=0), name


def agree(a: Stream, b: Stream, p: Prediction, q: Prediction, label: Any = None) -> None:
    """That both explain a label alike."""
    why, other = a.explain(p, label), b.explain(q, label)
    assert why.evidence.keys() == other.evidence.keys()
    assert list(why.evidence.values()) == pytest.approx(list(other.evidence.values()), abs=2e-3)
    assert why.probability == pytest.approx(other.probability, abs=1e-5)
    assert why.model_share == pytest.approx(other.model_share, abs=1e-3)
    shares = [[(cell.label, cell.share) for cell in told.cells] for told in (why, other)]
    loud = [sorted(share for _, share in told if share > 0.01) for told in shares]
    assert loud[0] == pytest.approx(loud[1], abs=1e-3)


def test_steps_are_those_of_the_reference(world: World) -> None:
    adapter = world.adapter()
    fast, slow = adapter.stream(), adapter.stream()
    for x, y in zip(*world.stream(), strict=True):
        p = fast.predict(x)
        fast.observe(y)
        with plainly():
            q = slow.predict(x)
            slow.observe(y)
        near(p, q)  # also once the label is learned
        agree(fast, slow, p, q)
        agree(fast, slow, p, q, p.labels[-1])
    assert compiled(fast) and not compiled(slow)
    mine, theirs = fast.tensors(), slow.tensors()
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name].dtype == theirs[name].dtype and mine[name].shape == theirs[name].shape
    for name in ("slot_labels", "cells.slot", "cells.label", "statistics.counts"):
        assert torch.equal(mine[f"user.0.{name}"], theirs[f"user.0.{name}"]), name


def test_labels_come_late(world: World) -> None:
    adapter = world.adapter()
    fast, slow = adapter.stream(), adapter.stream()
    waiting: list[tuple[Prediction, Prediction, Any]] = []
    for t, (x, y) in enumerate(zip(*world.stream(), strict=True)):
        p = fast.predict(x)
        with plainly():
            q = slow.predict(x)
        near(p, q)
        waiting.append((p, q, y))
        while len(waiting) > t % 4:
            p, q, y = waiting.pop(t % 3 % len(waiting))
            fast.observe(y, p)
            with plainly():
                slow.observe(y, q)


def test_a_loaded_stream_goes_on_bit_for_bit(world: World, tmp_path: Path) -> None:
    adapter = world.adapter()
    stream, kept = adapter.stream(), adapter.stream()
    for t, (x, y) in enumerate(zip(*world.stream(), strict=True)):
        if t < 20 or t % 7 == 0:
            stream.save(tmp_path / "stream")
            stream = adapter.load_stream(tmp_path / "stream")
        p, q = stream.predict(x), kept.predict(x)
        assert all(torch.equal(getattr(p, name), getattr(q, name)) for name in VOICES), t
        stream.observe(y)
        kept.observe(y)
    assert same(stream, kept) and compiled(kept)


@pytest.mark.parametrize("name", ["usual", "full and many", "wrong labels"])
@pytest.mark.parametrize("turn", [1, 3, 10])
def test_switching_within_a_stream_changes_nothing(name: str, turn: int) -> None:
    adapter = WORLDS[name].adapter()
    mixed, slow = adapter.stream(), adapter.stream()
    for t, (x, y) in enumerate(zip(*WORLDS[name].stream(), strict=True)):
        with plainly():
            q = slow.predict(x)
            slow.observe(y)
            if t // turn % 2:
                p = mixed.predict(x)
        if not t // turn % 2:
            p = mixed.predict(x)
        near(p, q)
        if t % 5 == 3:  # predicted in one way, learned in the other
            with plainly():
                mixed.observe(y)
        else:
            mixed.observe(y)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_apart(copied: Any) -> None:
    adapter = World().adapter()
    stream = adapter.stream()
    x, y = World().stream()
    for row, label in zip(x[:30], y, strict=False):
        stream.predict(row)
        stream.observe(label)
    user = stream._state.users[0]
    other = copied(user)
    before = {name: tensor.clone() for name, tensor in other.tensors().items()}
    for row, label in zip(x[30:], y[30:], strict=True):
        stream.predict(row)
        stream.observe(label)
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.tensors().items())
    assert not torch.equal(user.tensors()["numbers"], before["numbers"])
    probs = other.believe(x[30][None], torch.zeros(1, 8).normal_(), 40).told[0]
    assert float(probs.sum()) == pytest.approx(1, abs=1e-5)


def test_streams_side_by_side_are_those_alone() -> None:
    world = World(steps=25)
    adapter = world.adapter()
    batch, alone = adapter.streams(3), [adapter.stream() for _ in range(3)]
    x, y = world.stream()
    for t in range(len(x)):
        rows = torch.stack([x[t - i] for i in range(3)])
        probs = batch.predict(rows)
        for i, stream in enumerate(alone):
            p = stream.predict(rows[i]).probs
            assert torch.allclose(probs[i, : len(p)], p, atol=1e-5)
        mask = [True, t % 2 == 0, True]
        batch.observe([y[t - i] for i in range(3)], mask=mask)
        for i, stream in enumerate(alone):
            if mask[i]:
                stream.observe(y[t - i])


@pytest.mark.parametrize("labels", [3, 50])
def test_logits_that_are_alike(labels: int) -> None:
    """Torch says which of them come first, also here."""
    world = World(labels=labels, bias=False, zeros=True, steps=30)
    adapter = world.adapter()
    with torch.no_grad():
        adapter.backbone.model.weight.round_()
    fast, slow = adapter.stream(), adapter.stream()
    for x, y in zip(*world.stream(), strict=True):
        x = x.round()
        p = fast.predict(x)
        with plainly():
            q = slow.predict(x)
            slow.observe(y)
        assert torch.allclose(p.probs, q.probs, atol=1e-5)
        fast.observe(y)


def test_predicting_changes_nothing_and_earlier_predictions_stay() -> None:
    world = World()
    stream = world.adapter().stream()
    x, y = world.stream()
    for row, label in zip(x[:20], y, strict=False):
        stream.predict(row)
        stream.observe(label)
    before = stream.tensors()
    early = stream.predict(x[20])
    probs, why = early.probs.clone(), stream.explain(early)
    again = stream.predict(x[20])
    assert torch.equal(again.probs, probs)
    assert all(torch.equal(tensor, before[k]) for k, tensor in stream.tensors().items())
    for row, label in zip(x[20:40], y[20:], strict=False):
        stream.predict(row)
        stream.observe(label)
    assert torch.equal(early.probs, probs)
    assert repr(stream.explain(early)) == repr(why)


def test_what_is_wrong_is_said_as_the_reference_says_it() -> None:
    online = LogitMemory(4, LogitMemoryOptions())
    state = online.initial_state(1, None)
    h, logits = torch.ones(1, 3), torch.arange(4.0)[None]
    step = online.advance(state, None, h, logits, 4, None)
    online.commit(state, step, torch.tensor([4]), None)
    for wrong in ((torch.ones(1, 2), logits, 5), (h, logits[:, :3], 5), (h, logits, 4)):
        said = []
        for way in (True, False):
            with pytest.raises((RuntimeError, IndexError)) as info:
                if way:
                    online.advance(state, None, *wrong, None)
                else:
                    with plainly():
                        online.advance(state, None, *wrong, None)
            said.append(str(info.value))
        assert said[0] == said[1]
    stream = World().adapter().stream()
    for bad in ([float("nan")] * 6, [1.0] * 5):
        with pytest.raises(InputError):
            stream.predict(bad)
    step = online.advance(state, None, h, logits, 5, None)
    with pytest.raises(ValueError, match="label -1"):
        online.commit(state, step, torch.tensor([-1]), None)


def test_vectors_may_lie_in_any_way() -> None:
    online = LogitMemory(4, LogitMemoryOptions())
    state = online.initial_state(1, None)
    h, logits = torch.randn(1, 6), torch.randn(1, 4)
    expected = online.advance(state, None, h, logits, 4, None).probs
    wide = torch.stack([h, h], 2).flatten(1)[:, ::2]
    parameter, negative = nn.Parameter(logits.clone()), torch.complex(logits, -logits).conj().imag
    for x, z in ((wide, logits), (h, parameter), (h, negative)):
        assert torch.equal(online.advance(state, None, x, z, 4, None).probs, expected)


def test_a_user_that_does_not_fit_stays_plain() -> None:
    world = World()
    stream = world.adapter().stream()
    for x, y in zip(*world.stream(), strict=True):
        stream.predict(x)
        stream.observe(y)
    user: User = stream._state.users[0].plain()
    assert fits(user)
    for name, value in (
        ("cells.about", 10_000),
        ("cells.slot", -1),
        ("slot_labels", 2),
        ("rows", -3),
    ):
        tensors = {k: tensor.clone() for k, tensor in user.tensors().items()}
        tensors[name][:] = value
        other = copy.deepcopy(user)
        other.restore(tensors)
        assert not fits(other), name
    for name in ("statistics.root", "cells.key", "weights.held", "corrections.rows", "numbers"):
        other = copy.deepcopy(user)
        tensors = other.tensors()
        other.restore(tensors | {name: tensors[name][:-1]})
        assert not fits(other), name
