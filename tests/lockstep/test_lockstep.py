"""When steps are recorded, recorded again, and what they tell afterwards.

That they give what plain steps give is seen to in ``tests/conformance``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conformance.capture import OperationList, captured
from torch import Tensor, nn
from toys import (
    Recurrent,
    Stateless,
    assert_same,
    cells_in,
    make_adapter,
    random_combiner,
    random_stream,
    snapshot,
)

from labelmem import Adapter, Combiner, MemoryConfig, StreamBatch
from labelmem.errors import ClosedError, InputError, ModelError
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, Key, RecentTokens
from labelmem.lockstep import state as lockstep_state
from labelmem.lockstep.recorded import RecordedLockstep
from labelmem.trust import Awaited

N = 4


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[OperationList]:
    """Record on a CPU; what was recorded."""
    made: list[OperationList] = []

    def noted(self: RecordedLockstep, work: Callable[[], Any]) -> tuple[OperationList, Any]:
        operations, found = captured(self, work)
        made.append(operations)
        return operations, found

    monkeypatch.setattr(RecordedLockstep, "captured", noted)
    monkeypatch.setattr(lockstep_state, "DEVICES", ("cpu",))
    return made


@pytest.fixture
def graphs(recordings: list[OperationList], monkeypatch: pytest.MonkeyPatch) -> list[OperationList]:
    """The same where models and keys of the tests count as the package's own."""
    monkeypatch.setattr(lockstep_state, "_OWN", ("torch.nn.", "labelmem.", "toys", "test", "tests"))
    return recordings


def records(adapter: Adapter, recordings: list[OperationList]) -> bool:
    """Whether steps of new streams are recorded; the first one never is."""
    batch, before = adapter.streams(N), len(recordings)
    for _ in range(2):
        batch.predict(torch.ones(N, 3))
        batch.observe_ids(torch.arange(N))
    return len(recordings) > before


class Tokens(nn.Module):
    """Takes tokens of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.stack([x % 7, x % 3], dim=1).float())


def compare(
    batch: StreamBatch, other: StreamBatch, x: Any, ys: list[Any], masked: bool = True
) -> None:
    """Run both, ``other`` with no recording; everything they say and keep must agree."""
    generator = torch.Generator().manual_seed(1)
    for t in range(len(ys) // N):
        rows = slice(N * t, N * t + N)
        mask = torch.rand(N, generator=generator) < 0.8 if masked and t % 2 else None
        P = batch.predict(x[rows])
        with plainly():
            torch.testing.assert_close(P, other.predict(x[rows]), rtol=0, atol=1e-5)
            assert batch.last is not None and other.last is not None
            for name in ("theta", "model_probs", "memory_probs"):
                mine, theirs = getattr(batch.last, name), getattr(other.last, name)
                torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)
            other.observe(ys[rows], mask)
        batch.observe(ys[rows], mask)
        assert [batch.labels(n) for n in range(N)] == [other.labels(n) for n in range(N)]
    mine, theirs = snapshot(batch), snapshot(other)
    for name, value in theirs.items():
        if isinstance(value, Tensor):
            cut = [slice(size) for size in value.shape]  # a recording has room for more labels
            kept = mine[name][tuple(cut)]
            torch.testing.assert_close(kept, value, rtol=1e-4, atol=1e-5, msg=name)


def test_memory_that_runs_out_of_positions_is_recorded_again(
    graphs: list[OperationList], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep_state, "_SPARE", 3)
    batch, other = (make_adapter("stream", MemoryConfig(margin=math.inf)).streams(N) for _ in "ab")
    x, ys = random_stream(4, 20 * N, range(4), list("abcdefgh"))
    compare(batch, other, x, ys)
    assert 4 < len(graphs) < 20


def test_plain_steps_may_come_between(graphs: list[OperationList]) -> None:
    batch, other = (make_adapter("dense", MemoryConfig()).streams(N) for _ in range(2))
    x, ys = random_stream(5, 12 * N, range(4))
    for t in range(0, 12, 3):
        compare(batch, other, x[N * t :][: 2 * N], ys[N * t :][: 2 * N])
        with plainly():
            for each in (batch, other):
                each.predict(x[:N])
                each.observe(ys[:N])
    assert graphs


def test_predicting_is_pure_and_what_was_given_stays(graphs: list[OperationList]) -> None:
    batch = make_adapter("dense", MemoryConfig()).streams(N)
    x, ys = random_stream(6, 4 * N, range(4))
    batch.predict(x[:N])
    batch.observe(ys[:N])
    first = batch.predict(x[N : 2 * N])
    kept = first.clone()
    batch.predict(x[2 * N : 3 * N])
    assert torch.equal(first, kept)
    assert torch.equal(batch.predict(x[N : 2 * N]), kept)
    batch.reset()
    assert cells_in(batch) == 0
    made = len(graphs)
    for _ in range(2):
        batch.predict(x[:N])
        batch.observe(ys[:N])
    assert len(graphs) > made > 0


def two_steps(**options: Any) -> tuple[nn.Sequential, StreamBatch, Tensor, Tensor]:
    """Streams of a linear model that have come far enough to be recorded."""
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 4))
    batch = Adapter(model, **{"combiner": 0.5, **options}).streams(N)
    x, y = random_stream(7, N, range(4))[0], torch.tensor([0, 1, 2, 3])
    for _ in range(2):
        batch.predict(x)
        batch.observe_ids(y)
    return model, batch, x, y


@pytest.mark.parametrize("combiner", [0.5, random_combiner()], ids=["fixed", "dense"])
def test_what_is_wrong_is_told_when_the_streams_are_next_asked(
    graphs: list[OperationList], combiner: float | Combiner
) -> None:
    model, batch, x, y = two_steps(combiner=combiner)
    before = snapshot(batch)
    for ask in (lambda: batch.predict(x), lambda: batch.labels(0), lambda: batch.tensors()):
        with torch.no_grad():
            model[1].bias[0] = torch.inf
        batch.predict(x)
        batch.observe_ids(y)
        with pytest.raises(ModelError, match="NaN or infinite") as caught:
            ask()
        assert "the prediction before" in caught.value.__notes__[0]
        with torch.no_grad():
            model[1].bias[0] = 0.0
        assert_same(snapshot(batch), before)  # nothing was learned of it
    with torch.no_grad():
        model[1].bias[0] = torch.inf
        batch.predict(x)  # and its labels never come
        with pytest.raises(ModelError, match="NaN or infinite"):
            batch.predict(x)


def test_labels_that_are_none_are_told_too(graphs: list[OperationList]) -> None:
    _, batch, x, y = two_steps()
    before = snapshot(batch)
    batch.predict(x)
    batch.observe_ids(-y)
    with pytest.raises(InputError, match="label ids from 0"):
        batch.predict(x)
    assert_same(snapshot(batch), before)
    batch.predict(x)
    with pytest.raises(InputError, match="booleans"):  # its form is known without waiting
        batch.observe_ids(y, torch.ones(N))
    batch.predict(x)
    batch.observe_ids(y)
    batch.predict(x)
    batch.observe_ids(-y)
    with pytest.raises(InputError, match="label ids from 0"):
        batch.reset()
    assert batch.predict(x).shape == (N, 4) and not cells_in(batch)


def test_new_labels_are_numbered_once_they_are_known(graphs: list[OperationList]) -> None:
    _, batch, x, _ = two_steps()
    batch.predict(x)
    batch.observe_ids(torch.tensor([1, 5, 9, 9]), torch.tensor([True, True, True, False]))
    assert batch.predict(x).shape == (N, 10) and batch.widths is not None
    assert batch.widths.tolist() == [4, 6, 10, 4]
    assert batch.labels(1)[4:] == [("id", 4), ("id", 5)]


def test_the_next_prediction_begins_before_the_answers_come(
    graphs: list[OperationList], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, batch, x, y = two_steps()
    predict, waited = graphs[0], []
    come = Awaited.come
    monkeypatch.setattr(Awaited, "come", lambda self: waited.append(predict.times) or come(self))
    before = predict.times
    for _ in range(3):
        batch.predict(x)
        batch.observe_ids(y)
    assert waited == [before + 1, before + 2, before + 3]
    batch.predict(x)
    batch.observe_ids(-y)
    with pytest.raises(InputError, match="label ids from 0"):
        batch.predict(2 * x)
    expected = batch.predict(x)  # what was begun in vain is not taken for this
    assert torch.equal(batch.predict(x), expected)


def test_labels_beyond_the_columns_are_not_learned_unseen(graphs: list[OperationList]) -> None:
    model, batch, x, y = two_steps(combiner=random_combiner())
    other = Adapter(model, combiner=random_combiner()).streams(N)
    ids = [y, y, y, torch.tensor([0, 4, 2, 70]), y, torch.tensor([71, 4, 2, 3])]
    for labels in ids[2:]:
        batch.predict(x)
        batch.observe_ids(labels)
    with plainly():
        for labels in ids:
            other.predict(x)
            other.observe_ids(labels)
    assert batch.width == other.width == 72
    torch.testing.assert_close(batch.predict(x), other.predict(x), rtol=0, atol=1e-5)


def test_a_sum_that_overflows_is_no_reason_to_stop(graphs: list[OperationList]) -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 4))
    batch, other = Adapter(model, combiner=0.5).streams(N), Adapter(model, combiner=0.5).streams(N)
    with torch.no_grad():
        model[1].bias.fill_(2e38)
    x, ys = random_stream(8, 6 * N, range(4))
    compare(batch, other, x, ys, masked=False)  # found wanting each time, and taken plainly
    assert graphs


def test_tokens_beyond_those_prepared_for(graphs: list[OperationList]) -> None:
    def made() -> StreamBatch:
        torch.manual_seed(0)
        return Adapter(Tokens(), combiner=0.5, key=RecentTokens(dim=8)).streams(N)

    batch, other = made(), made()
    x = torch.tensor([0, 1, 2, 3])
    for y in (x, x.flip(0)):
        batch.predict(x)
        batch.observe_ids(y)
        with plainly():
            other.predict(x)
            other.observe_ids(y)
    batch.predict(x + 5000)
    batch.observe_ids(x)
    with pytest.raises(InputError, match="predict it once more"):
        batch.predict(x)
    with plainly():
        expected = other.predict(x + 5000)
    torch.testing.assert_close(batch.predict(x + 5000), expected)


def test_only_what_waits_for_nothing_is_recorded(graphs: list[OperationList]) -> None:
    def recorded(combiner: float | Combiner = 0.5, **options: Any) -> bool:
        return records(Adapter(Stateless(), combiner=combiner, **options), graphs)

    assert recorded() and recorded(Combiner(kind="stream")) and recorded(Combiner())
    assert not recorded(Combiner(kind="label", active_threshold=0.1))
    assert not recorded(memory=MemoryConfig(cells_per_label=2))
    assert not recorded(key=lambda x, h: h)


class Unknown(Key):
    """A key of a user: whether it waits for the device is not known."""

    def initial_state(self, streams: int, device: torch.device) -> None:
        return None

    def __call__(self, x: Any, h: Tensor, state: Any) -> tuple[Tensor, Any]:
        return 2 * h, state


class UnknownModule(nn.Module):
    """A part of a key of which that is not known either."""


def test_keys_are_looked_through(recordings: list[OperationList]) -> None:
    def recorded(key: Any) -> bool:
        model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 4))
        return records(Adapter(model, combiner=0.5, key=key), recordings)

    assert recorded(None) and recorded(Joined(Hidden(), Joined(Hidden(0.5), Hidden(0.3))))
    assert not recorded(Joined(Hidden(), Unknown()))
    assert not recorded(Joined(Hidden(), Joined(Hidden(), Unknown())))
    module = nn.Bilinear(3, 5, 5)
    assert recorded(module)
    module.part = UnknownModule()
    assert not recorded(module)
    allowed = Unknown()
    allowed.recordable = True  # type: ignore[attr-defined]
    assert recorded(Joined(Hidden(), Joined(allowed)))


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
@pytest.mark.parametrize("deep", [False, True])
def test_hooks_of_the_user_are_called_in_every_step(
    graphs: list[OperationList], register: str, deep: bool
) -> None:
    model, calls = nn.Sequential(nn.Sequential(nn.Linear(3, 5)), nn.Linear(5, 4)), []
    watched = model[0][0] if deep else model
    x, y = random_stream(7, N, range(4))[0], torch.tensor([0, 1, 2, 3])

    def steps(batch: StreamBatch) -> list[int]:
        counts = []
        for _ in range(3):
            before = len(calls)
            batch.predict(x)
            counts.append(len(calls) - before)
            batch.observe_ids(y)
        return counts

    handle = getattr(watched, register)(lambda *_: calls.append(1))
    batch = Adapter(model, combiner=0.5).streams(N)
    assert steps(batch) == [1, 1, 1] and not graphs
    handle.remove()
    batch = Adapter(model, combiner=0.5).streams(N)  # the first adapter's own hook is there still
    steps(batch)
    assert graphs
    handle = getattr(watched, register)(lambda *_: calls.append(1))
    assert steps(batch) == [1, 1, 1]
    handle.remove()
    made = len(graphs)
    assert steps(batch) == [0, 0, 0] and len(graphs) <= made + 2


def test_hooks_on_a_combiner_are_called_too(graphs: list[OperationList]) -> None:
    combiner = random_combiner()
    combiner.register_forward_pre_hook(lambda *_: None)
    assert not records(Adapter(Stateless(), combiner=combiner), graphs)


def test_what_was_recorded_ends_with_the_adapter(graphs: list[OperationList]) -> None:
    _, batch, x, _ = two_steps()
    batch.predict(x)
    batch.method.close()  # type: ignore[attr-defined]
    with pytest.raises(ClosedError):
        batch.predict(x)


def test_a_changed_combiner_is_not_passed_over(graphs: list[OperationList]) -> None:
    _, batch, x, _ = two_steps(combiner=0.5)
    batch.method.combiner = 1.0  # type: ignore[attr-defined]
    batch.predict(x)
    assert batch.last is not None and batch.last.theta is not None
    assert float(batch.last.theta.min()) == 1.0


def test_models_of_unknown_make_are_not_recorded(recordings: list[OperationList]) -> None:
    model = Recurrent()
    assert not records(Adapter(model, combiner=0.5), recordings)
    model.recordable = True  # type: ignore[assignment]
    assert records(Adapter(model, combiner=0.5), recordings)
