"""One adapter in many threads: nobody gets what is another's, and nothing breaks."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conformance.forms import Form, form
from threads import BESIDE, assert_alike, at_once, crowd, live
from torch import Tensor, nn
from toys import Stateless, assert_same, random_stream, run, snapshot

from labelmem import Adapter
from labelmem.backbone import Backbone
from labelmem.baselines.sgd_all import SGDAll
from labelmem.directions import Directions
from labelmem.errors import ObserveError

NAMES = ("fixed", "label combiner", "stream combiner", "recurrent", "gru", "history", "index")
SOME = [*BESIDE, *map(form, NAMES)]
CPU = torch.device("cpu")


def users_of(kind: Form, steps: int, threads: int = 4) -> list[Any]:
    return [kind.recorded(50 + n, steps) for n in range(threads)]


@pytest.mark.parametrize("plain", [False, True], ids=["kernels", "plain"])
@pytest.mark.parametrize("kind", SOME, ids=str)
def test_a_stream_each_gives_what_one_after_another_gives(
    kind: Form, plain: bool, tmp_path: Path
) -> None:
    assert_alike(kind.build(), users_of(kind, 20), tmp_path, plain)


def test_descent_on_all_weights_leaves_the_model_alone() -> None:
    method = SGDAll(Stateless())
    before = copy.deepcopy(method.backbone.model.state_dict())
    assert_alike(method, [random_stream(n, 12, range(4), ["emu"]) for n in range(4)], None)
    assert_same(before, dict(method.backbone.model.state_dict()))


@pytest.mark.parametrize("name", ["fixed", "label combiner", "history", "many cells", "index"])
def test_threads_take_turns_on_one_stream(name: str, tmp_path: Path) -> None:
    kind = form(name)
    adapter, users = kind.build(), users_of(kind, 20)
    stream = crowd(adapter, users, tmp_path / "s")
    assert stream.observed == 80
    assert set(stream.labels) == {*adapter.known.names, *(y for _, ys in users for y in ys)}
    stream.save(tmp_path / "s")
    loaded = adapter.load_stream(tmp_path / "s")
    assert_same(snapshot(loaded), snapshot(stream))
    for a, b in zip(run(loaded, *users[0]), run(stream, *users[0]), strict=True):
        assert torch.equal(a, b)


def test_threads_take_turns_on_one_batch() -> None:
    batch = Adapter(Stateless(), combiner=0.5).streams(3)
    seen = [0] * 4

    def stepped(n: int) -> None:
        x, ys = random_stream(n, 40, range(4), ["emu", "owl"])
        for t, y in enumerate(ys):
            batch.predict(x[t].expand(3, 3))
            try:
                batch.observe([y, 0, "new"])
            except ObserveError:  # another thread has told that label
                continue
            seen[n] += 1
            assert batch.width >= len(batch.labels(2)) == 5

    at_once(*(lambda n=n: stepped(n) for n in range(4)))
    assert batch.tensors()["memory.time"].tolist() == [sum(seen)] * 3


def test_threads_take_turns_on_a_batch_of_one() -> None:
    kind = form("history")
    batch, seen = kind.build().streams(1), [0] * 4

    def stepped(n: int) -> None:
        x, ys = kind.recorded(n, 60)
        for t, y in enumerate(ys):
            batch.predict(x[t : t + 1])
            last = batch.last
            assert last is None or abs(float(last.probs.sum()) - 1) < 1e-5
            try:
                batch.observe([y])
            except ObserveError:
                continue
            seen[n] += 1

    at_once(*(lambda n=n: stepped(n) for n in range(4)))
    assert batch.tensors()["memory.time"].tolist() == [sum(seen)]


# ---------------------------------------------------------------- who runs the model


def test_others_may_call_the_model_meanwhile() -> None:
    model = BESIDE[1].build().backbone.model
    first, second = Adapter(model, combiner=0.5), Adapter(model, combiner=0.2)
    x, ys = random_stream(1, 40, range(9))
    expected = live(first, x, ys, None), live(second, x, ys, None)

    def calls() -> None:
        with torch.no_grad():
            for _ in range(1500):
                model(torch.randn(1, 3))

    lives = [lambda a=adapter: live(a, x, ys, None) for adapter in (first, second)]
    seen = at_once(*lives, calls, calls)[:2]
    for a, b in zip(expected, seen, strict=True):
        assert_same(dict(enumerate(a[:-1])), dict(enumerate(b[:-1])))


class Asks(nn.Module):
    """Asks an adapter once its own head has spoken."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 4)
        self.ask: Any = None

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(x)
        ask, self.ask = self.ask, None
        if ask is not None:
            ask(x + 1)
        return logits


@pytest.mark.parametrize("same", [True, False], ids=["the same model", "another model"])
def test_a_model_may_ask_an_adapter(same: bool) -> None:
    model, x = Asks(), torch.rand(1, 3)
    outer = Backbone(model)
    inner = Backbone(model if same else Stateless())
    for asked in (inner, outer):
        model.ask = lambda given, asked=asked: asked(given, None, 1)
        assert torch.equal(outer(x, None, 1)[0], x)


def test_hooks_that_are_registered_at_once_are_all_kept() -> None:
    model = nn.Linear(3, 4)
    made = at_once(*[lambda: [Backbone(model) for _ in range(300)]] * 4)
    assert len(model._forward_hooks) == 1200
    x = torch.rand(1, 3)
    assert all(torch.equal(b(x, None, 1)[0], x) for some in made for b in some[::100])


# ---------------------------------------------------------------- what streams share


def test_directions_grow_in_many_threads() -> None:
    shared, alone = Directions(3, seed=1), Directions(3, seed=1)
    sizes = [5000, 70_000, 20_000, 9000]
    tables = at_once(*(lambda n=n: shared.table(CPU, n) for n in sizes))
    everything = alone.table(CPU, max(sizes))
    for size, table in zip(sizes, tables, strict=True):
        assert len(table) >= size and torch.equal(table, everything[: len(table)])
    assert len(shared.table(CPU)) == len(everything)


def test_streams_share_a_signature_that_is_theirs() -> None:
    adapter = Adapter(Stateless(), combiner=0.5)
    found = at_once(*[lambda: [adapter.shared_signature() for _ in range(50)]] * 4)
    assert all(mine == adapter.signature() for some in found for mine in some)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_pickles_of_a_stream_go_on(again: Any) -> None:
    x, ys = random_stream(1, 20, range(4), ["emu"])
    stream = Adapter(Stateless(), combiner=0.5).stream()
    run(stream, x[:10], ys[:10])
    other = again(stream)
    for a, b in zip(run(other, x[10:], ys[10:]), run(stream, x[10:], ys[10:]), strict=True):
        assert torch.equal(a, b)


FIRST_USE = """
from conformance.forms import form
from threads import assert_same, at_once, live
forms = [form(name) for name in ("fixed", "fixed", "history", "history")]
methods, users = [f.build() for f in forms], [f.recorded(1, 12) for f in forms]
seen = at_once(*(lambda m=m, u=u: live(m, *u, None) for m, u in zip(methods, users)))
for m, u, told in zip(methods, users, seen):
    assert_same(dict(enumerate(live(m, *u, None)[:-1])), dict(enumerate(told[:-1])))
"""


def test_kernels_may_be_first_used_by_many_threads() -> None:
    """They are compiled, or loaded, while other threads ask for them."""
    code = f"import sys; sys.path[:] = {sys.path!r}\n{FIRST_USE}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
