"""Copies and pickles go on bit for bit, and share nothing with what they were made of."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conformance.forms import FORMS, Form
from conformance.ways import recording_on_cpu
from toys import Recurrent, Stateless, hooks_of, random_combiner, snapshot, unchanged

from labelmem import Adapter, Combiner, LabeledMemory, Prediction, Stream, StreamBatch
from labelmem.errors import ClosedError, ModelError, ObserveError
from labelmem.keys import RecentTokens
from labelmem.models import HistoryModel


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def dumped(thing: Any) -> Any:
    joblib, file = pytest.importorskip("joblib"), io.BytesIO()
    joblib.dump(thing, file)
    file.seek(0)
    return joblib.load(file)


WAYS = [copy.deepcopy, pickled, dumped]
Way = Callable[[Any], Any]


def primed(**options: Any) -> Adapter:
    adapter = Adapter(Stateless(), **options)
    adapter.prime(torch.eye(3).repeat(4, 1), [0, 1, 2, 3] * 3)
    return adapter


OWN = [
    Form("default", lambda **options: Adapter(Stateless(), **options), oracle=False),
    Form("default, recurrent", lambda **options: Adapter(Recurrent(), **options), oracle=False),
    Form("default, primed", primed, oracle=False),
]
EVERY = [*OWN, *FORMS]
SOME = [form for form in EVERY if form.name in ("default, primed", "fixed", "history")]


def values(p: Prediction) -> list[torch.Tensor | None]:
    return [p.probs, p.theta, p.model_probs, p.memory_probs]


def assert_equal(a: Any, b: Any, atol: float = 0.0) -> None:
    """To the bit, unless told otherwise, through lists and dictionaries."""
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, rtol=0, atol=atol)
    elif isinstance(a, list):
        for one, other in zip(a, b, strict=True):
            assert_equal(one, other, atol)
    elif isinstance(a, dict):
        assert_equal([list(a), *a.values()], [list(b), *b.values()], atol)
    else:
        assert a == b


def gone_on(stream: Stream, late: Prediction, x: Any, ys: list[Any]) -> list[Any]:
    """What a stream says after its late and its waiting labels came, and what it remembers."""
    stream.observe(ys[0], late)
    stream.observe(ys[1])  # of the prediction that was waiting
    found = []
    for t in range(2, len(ys)):
        found.append(values(stream.predict(x[t])))
        stream.observe(ys[t])
    return [found, snapshot(stream)]


def check_stream(form: Form, way: Way) -> None:
    """Copy a stream with a prediction that waits, and another whose label is late."""
    (x, ys), stream = form.recorded(5, 16), form.build().stream()
    for t in range(6):
        stream.predict(x[t])
        stream.observe(ys[t])
    late = stream.predict(x[6])
    stream.predict(x[7])
    stream.observe(ys[7])
    stream.predict(x[8])
    other, other_late = way((stream, late))
    assert_equal(values(other_late), values(late))
    with unchanged(stream):
        found = gone_on(other, other_late, x[8:], ys[8:])
    assert_equal(found, gone_on(stream, late, x[8:], ys[8:]))


@pytest.mark.parametrize("form", EVERY, ids=str)
def test_a_pickled_stream_goes_on_bit_for_bit(form: Form) -> None:
    check_stream(form, pickled)


@pytest.mark.parametrize("way", [copy.deepcopy, dumped])
@pytest.mark.parametrize("form", SOME, ids=str)
def test_so_does_one_that_was_copied_or_dumped(form: Form, way: Way) -> None:
    check_stream(form, way)


def test_a_copy_of_a_copy_goes_on_too() -> None:
    check_stream(SOME[-1], lambda thing: copy.deepcopy(pickled(thing)))


def run(batch: StreamBatch, form: Form, steps: range) -> list[Any]:
    """What a batch says from a step on, which may have been predicted, and what it remembers."""
    users = [form.recorded(seed, 18) for seed in range(len(batch))]
    found = []
    for t in steps:
        if t != steps[0] or batch.last is None:
            found.append(batch.predict(torch.stack([x[t] for x, _ in users])).clone())
        batch.observe([y[t] for _, y in users], mask=[(t + i) % 4 > 0 for i in range(len(users))])
    return [found, snapshot(batch)]


def check_batch(form: Form, batch: StreamBatch, way: Way, waits: bool, atol: float) -> None:
    run(batch, form, range(8))
    if waits:
        batch.predict(torch.stack([form.recorded(9, 1)[0][0]] * len(batch)))
    other = way(batch)
    assert type(other) is type(batch)
    with unchanged(batch):
        found = run(other, form, range(8, 18))
    assert_equal(found, run(batch, form, range(8, 18)), atol)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("way", [*WAYS, copy.copy])
@pytest.mark.parametrize("form", SOME, ids=str)
def test_a_copied_batch_goes_on_bit_for_bit(form: Form, way: Way, waits: bool) -> None:
    check_batch(form, form.build().streams(3), way, waits, atol=0)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("way", [*WAYS, copy.copy])
def test_so_does_one_whose_whole_steps_are_compiled(way: Way, waits: bool) -> None:
    check_batch(SOME[-1], SOME[-1].build().streams(1), way, waits, atol=0)


def test_what_kernels_know_of_the_weights_is_not_pickled() -> None:
    model, key = HistoryModel(2_000, dim=4).eval(), RecentTokens(last=2, dim=8)
    combiner = random_combiner(4, kind="stream", parts=2)
    batch = Adapter(model, key=key, combiner=combiner).streams(1)
    before = len(pickle.dumps(batch))
    batch.predict(torch.tensor([3]))
    assert len(pickle.dumps(batch)) < 2 * before


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("way", [pickled, copy.copy])
@pytest.mark.parametrize("name", ["label combiner", "history"])
def test_so_does_one_whose_steps_are_recorded_but_for_rounding(
    name: str, way: Way, waits: bool
) -> None:
    """The first step of a copy is not recorded, and rounds otherwise."""
    form = next(form for form in FORMS if form.name == name)
    with recording_on_cpu():
        check_batch(form, form.build().streams(3), way, waits, atol=1e-6)


@pytest.mark.parametrize("labels_came", [False, True])
def test_what_was_wrong_with_a_recorded_step_is_told_when_it_is_copied(labels_came: bool) -> None:
    model, x = Stateless(), torch.ones(2, 3)
    with recording_on_cpu():
        batch = Adapter(model, combiner=0.5).streams(2)
        for _ in range(3):
            batch.predict(x)
            batch.observe([0, 1])
        batch.predict(x)
        with torch.no_grad():
            model.head.bias[0] = torch.inf
        batch.predict(x)
        if labels_came:
            batch.observe([0, 1])
        with pytest.raises(ModelError, match="NaN or infinite"):
            copy.deepcopy(batch)


# ---------------------------------------------------------------- adapters


@pytest.mark.parametrize("way", WAYS)
def test_copies_have_a_hook_of_their_own(way: Way) -> None:
    model = Stateless()
    adapter = Adapter(model, combiner=0.5)
    for pair in ((adapter, model), (model, adapter)):
        copied = way(pair)
        other, others_model = copied if pair[0] is adapter else copied[::-1]
        assert other.backbone.model is others_model
        assert len(hooks_of(model)) == len(hooks_of(others_model)) == 1
        other.close()
        assert len(hooks_of(model)) == 1 and not hooks_of(others_model)
        adapter.stream().predict(torch.ones(3))
        with pytest.raises(ClosedError):
            other.stream()
    other = way(adapter)
    adapter.close()
    other.stream().predict(torch.ones(3))


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_gives_its_model_back_as_the_first_was_found(way: Way) -> None:
    model = Stateless().train()
    other = way(Adapter(model))
    assert not other.backbone.model.training
    other.close()
    assert other.backbone.model.training and not model.training


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("combiner", [None, Combiner(hidden=3, kind="label")])
def test_what_was_learned_from_recordings_is_copied(combiner: Any, way: Way) -> None:
    form = OWN[0]
    adapter = form.build(combiner=combiner)
    recorded = [form.recorded(seed, 12) for seed in range(4)]
    if combiner is None:
        adapter.tune(recorded, trials=2)
    else:
        adapter.fit(recorded, epochs=1)
    other, (x, ys) = way(adapter), form.recorded(9, 12)
    streams = adapter.stream(), other.stream()
    for t, y in enumerate(ys):
        assert_equal(*(values(stream.predict(x[t])) for stream in streams))
        for stream in streams:
            stream.observe(y)


def test_a_copied_adapter_learns_alone() -> None:
    adapter = Adapter(Stateless(), combiner=random_combiner())
    other, before = copy.deepcopy(adapter), adapter.stream().predict(torch.ones(3))
    with torch.no_grad():
        for parameter in [*other.backbone.model.parameters(), *other.combiner.parameters()]:
            parameter.add_(1)
    assert_equal(values(adapter.stream().predict(torch.ones(3))), values(before))
    assert not torch.equal(other.stream().predict(torch.ones(3)).probs, before.probs)


@pytest.mark.parametrize("way", WAYS)
def test_streams_that_are_copied_together_still_share_one_adapter(way: Way) -> None:
    adapter = Adapter(Stateless())
    users = way({"ada": adapter.stream(), "bob": adapter.stream(), "both": adapter.streams(2)})
    assert len({id(user.method) for user in users.values()}) == 1
    assert users["ada"].method is not adapter
    users["ada"].predict(torch.ones(3))
    users["ada"].observe("new")
    assert "new" not in users["bob"].labels


def test_what_cannot_be_pickled_is_named() -> None:
    adapter = Adapter(Stateless(), combiner=0.5, key=lambda x, h: h)
    for thing in (adapter, adapter.stream()):
        with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
            pickle.dumps(thing)
    copy.deepcopy(adapter).stream().predict(torch.ones(3))


def test_another_process_goes_on(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    stream = Adapter(model, labels=["cat", "dog"], combiner=0.5).stream()
    for label in ("emu", "cat"):
        stream.predict(torch.ones(3))
        stream.observe(label)
    (tmp_path / "stream").write_bytes(pickle.dumps(stream))
    program = (
        "import pickle, sys, torch; stream = pickle.load(open(sys.argv[1], 'rb'));"
        "stream.observe('emu', stream.predict(torch.ones(3)));"
        "print(stream.labels, stream.predict(torch.ones(3)).probs.tolist())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "stream")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    stream.observe("emu", stream.predict(torch.ones(3)))
    assert told.strip() == f"{stream.labels} {stream.predict(torch.ones(3)).probs.tolist()}"


# ---------------------------------------------------------------- one stream, and its predictions


@pytest.mark.parametrize("batch", [False, True])
def test_a_shallow_copy_is_another_stream_of_the_same_adapter(batch: bool) -> None:
    adapter = Adapter(Stateless(), combiner=0.5)
    stream: Any = adapter.streams(1) if batch else adapter.stream()
    x, y = (torch.ones(1, 3), ["new"]) if batch else (torch.ones(3), "new")
    other = copy.copy(stream)
    assert other.method is adapter
    with unchanged(stream):
        other.predict(x)
        other.observe(y)
    assert snapshot(other)["labels"] != snapshot(stream)["labels"]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_labels_are_not_copied(way: Way) -> None:
    """One that equals nothing else is still found."""
    label, known = object(), [object() for _ in range(4)]
    stream = Adapter(Stateless(), labels=known).stream()
    stream.predict(torch.ones(3))
    stream.observe(label)
    other = way(stream)
    assert other.labels == [*known, label] and other.method.stream().labels == known


@pytest.mark.parametrize("way", WAYS)
def test_a_prediction_belongs_to_what_it_was_copied_with(way: Way) -> None:
    stream = Adapter(Stateless(), combiner=0.5).stream()
    p = stream.predict(torch.ones(3))
    other, others = way((stream, p))
    with pytest.raises(ObserveError, match="another stream"):
        stream.observe(0, others)
    other.observe(0, others)
    with pytest.raises(ObserveError, match="observed already"):
        other.observe(0, others)
    assert stream.observed == 0


def test_a_prediction_is_pickled_without_the_model() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 100_000), torch.nn.Linear(100_000, 2))
    p = Adapter(model, combiner=0.5, key=squared_input).stream().predict(torch.ones(3))
    kept = pickle.dumps(p)
    assert len(kept) < 1_000_000  # h is in it
    assert_equal(values(pickle.loads(kept)), values(p))


def squared_input(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    return x * x


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("form", [OWN[0], *(form for form in FORMS if form.name == "recurrent")])
def test_copies_made_in_inference_mode_are_used_outside(form: Form, way: Way) -> None:
    (x, ys), stream = form.recorded(3, 6), form.build().stream()
    batch = stream.method.streams(2)
    for t, y in enumerate(ys):
        stream.predict(x[t])
        stream.observe(y)
        batch.predict(x[t].expand(2, -1))
        batch.observe([y, y])
    with torch.inference_mode():
        other, others = way(stream), way(batch)
    for t, y in enumerate(ys):
        other.predict(x[t])
        other.observe(y)
        others.predict(x[t].expand(2, -1))
        others.observe([y, y])


@pytest.mark.parametrize("way", WAYS)
def test_memories_are_copied(way: Way) -> None:
    memory = LabeledMemory(dim=2)
    memory.write(torch.eye(2)[:1], torch.tensor([3]))
    read, other = memory.read(torch.eye(2)[:1]), way(memory)
    copied = way(read)
    other.write(torch.eye(2)[1:], torch.tensor([5]))
    assert (len(memory), len(other)) == (1, 2)
    memory.write(torch.eye(2)[1:], torch.tensor([4]))
    assert_equal(copied.label, torch.tensor([[3]]))
    assert_equal(copied.scores(9), read.scores(9))
