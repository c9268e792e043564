"""Fused kernels against the specification, in Triton's interpreter where there is no GPU."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import is_dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from strategies import DIM, Event, configs, events
from torch import Tensor
from toys import make_adapter, random_combiner, random_stream, snapshot

from labelmem import Adapter, LabeledMemory, MemoryConfig, StreamBatch
from labelmem import functional as F
from labelmem.combiner import LabelCombiner
from labelmem.combining import gru
from labelmem.engines import triton as kernels
from labelmem.errors import ModelError
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.lockstep import state as lockstep_state
from labelmem.lockstep.recorded import RecordedLockstep
from labelmem.models import HistoryModel
from labelmem.trust import on_trust

triton = pytest.importorskip("triton", reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N = 3


# Triton asks for its interpreter when it is imported, so a CPU needs a process that begins with it.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
kernel = pytest.mark.skipif(
    DEVICE == "cpu" and not INTERPRETED, reason="runs in the process that the first test starts"
)


@pytest.mark.skipif(DEVICE == "cuda" or INTERPRETED, reason="kernels run in this process")
def test_all_that_follows_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def compare(batch: StreamBatch, other: StreamBatch, x: Any, ys: list[Any]) -> None:
    """Run both, ``other`` without kernels; everything they say and keep must agree."""
    for t in range(len(ys) // N):
        rows, mask = slice(N * t, N * t + N), [True, t % 2 == 0, True]
        seen = batch.predict(x[rows])
        with plainly():
            torch.testing.assert_close(seen, other.predict(x[rows]), rtol=0, atol=1e-5)
            for name in ("theta", "model_probs", "memory_probs"):
                mine, theirs = getattr(batch.last, name), getattr(other.last, name)
                torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5, msg=name)
            other.observe(ys[rows], mask)
        batch.observe(ys[rows], mask)
    mine, theirs = snapshot(batch), snapshot(other)
    for name, value in theirs.items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(mine[name], value, rtol=1e-4, atol=1e-5, msg=name)


class Again:
    """Work that is done once more, into what it left the first time."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.first = work, work()

    @torch.no_grad()
    def replay(self) -> None:
        for mine, new in zip(tensors_of(self.first), tensors_of(self.work()), strict=True):
            if 0 not in mine.stride():  # positions, which stay the same
                mine.copy_(new)


def tensors_of(found: Any) -> list[Tensor]:
    """All that a step, or another tree of results, consists of."""
    if isinstance(found, Tensor):
        return [found]
    if isinstance(found, dict):
        return [x for part in found.values() for x in tensors_of(part)]
    if isinstance(found, tuple | list):
        return [x for part in found for x in tensors_of(part)]
    return tensors_of(vars(found)) if is_dataclass(found) else []


@kernel
def test_label_states_change_places_when_steps_are_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, on_device = [], RecordedLockstep.captured

    def noted(self: RecordedLockstep, work: Callable[[], Any]) -> tuple[Any, Any]:
        made.append(work)
        return (on_device if DEVICE == "cuda" else captured)(self, work)

    def captured(self: RecordedLockstep, work: Callable[[], Any]) -> tuple[Again, Any]:
        held = self.places.tensors()
        before = {name: x.clone() for name, x in held.items()}
        again = Again(work)
        for name, x in held.items():  # recording does nothing yet
            x.copy_(before[name])
        return again, again.first

    monkeypatch.setattr(RecordedLockstep, "captured", noted)
    monkeypatch.setattr(lockstep_state, "DEVICES", (DEVICE,))
    monkeypatch.setattr(lockstep_state, "_OWN", ("torch.nn.", "labelmem.", "toys"))
    batch, other = (make_adapter("dense", MemoryConfig()).streams(N) for _ in range(2))
    compare(batch, other, *random_stream(3, 4 * N, range(4)))
    assert len(made) == 4  # to predict and to observe, with the states in either place


@kernel
@pytest.mark.parametrize("correct", [True, False])
def test_stream_combiners_that_see_parts_of_a_key(correct: bool) -> None:
    model = HistoryModel(labels=6, dim=4).eval().to(DEVICE)

    def made() -> StreamBatch:
        combiner = random_combiner(4, kind="stream", rescorer=5, parts=4, correct=correct)
        for number, units in enumerate(combiner.buffers()):  # as standardising might leave them
            units.copy_(torch.linspace(0.5, 2.0, len(units)).roll(number))
        combiner.features_spread[3] = torch.inf  # it is blind to this one
        key = Joined(RecentTokens(dim=8, pair=True), Hidden(0.3))
        always = MemoryConfig(margin=math.inf)
        return Adapter(model, memory=always, key=key, combiner=combiner).streams(N)

    tokens = torch.randint(0, 6, (3 * N,), generator=torch.Generator().manual_seed(2))
    compare(made(), made(), tokens, tokens.tolist())


def tensor_of(values: list[float]) -> Tensor:
    return torch.tensor(values, device=DEVICE)


@kernel
@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(config=configs, stream=events())
def test_cells_are_read_and_written_as_specified(config: MemoryConfig, stream: list[Event]) -> None:
    # A lead of just the margin may round either way.
    config = replace(config, cells_per_label=1, margin=config.margin + 0.0123)
    kind: dict[str, Any] = {"streams": 2, "device": DEVICE}
    short = LabeledMemory(DIM, config, **kind)
    long = LabeledMemory(DIM, config, fast=False, **kind)
    for event, other in zip(stream, stream[::-1], strict=True):
        h = torch.tensor([event.h, other.h], device=DEVICE)
        y = torch.tensor([event.y, other.y], device=DEVICE)
        P = event.probs().to(DEVICE, torch.float32).expand(2, -1)
        mask = torch.tensor([True, bool(event.y % 2)], device=DEVICE)
        assert torch.equal(short.write(h, y, P, mask), long.write(h, y, P, mask))
        a, b = short.read(h), long.read(h)
        k = b.label.shape[1]
        for name in ("label", "alpha", "weight", "score", "strength", "age"):
            mine, theirs = getattr(a, name)[:, :k], getattr(b, name)
            held = b.label >= 0
            torch.testing.assert_close(mine[held], theirs[held], rtol=1e-5, atol=1e-5, msg=name)
    mine, theirs = short.tensors(), long.tensors()
    for name in theirs:
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-5, atol=1e-5, msg=name)


@kernel
@pytest.mark.parametrize("y", [0, 1, 2, 5])
def test_a_write_that_is_told_the_two_highest(y: int) -> None:
    P = tensor_of([0.4, 0.4, 0.2, 0.5, 0.3, 0.2, 0.05, 0.05, 0.9, 1.0, 0.0, 0.0]).view(4, 3)
    label, seen = torch.full((4,), y, device=DEVICE), torch.ones(4, dtype=torch.bool, device=DEVICE)
    for margin in (0.1, 1.0):
        told = [None, P.topk(2, dim=1).values]
        memories = [LabeledMemory(DIM, MemoryConfig(margin=margin), 4, DEVICE) for _ in told]
        h = torch.ones(4, DIM, device=DEVICE)
        a, b = (m.write(h, label, P, seen, two) for m, two in zip(memories, told, strict=True))
        loss, _ = F.margin_loss(P, label, margin)
        assert torch.equal(a, b) and torch.equal(a, loss > 0)


@kernel
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's numpy minds
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_recorded_step_doubts_logits_that_are_not_finite(value: float) -> None:
    adapter = make_adapter("dense", MemoryConfig())
    adapter.backbone.model.to(DEVICE)
    adapter.combiner.to(DEVICE)
    x, state = random_stream(0, N, range(4))[0].to(DEVICE), adapter.initial_state(N)
    for fine in (True, False):
        with on_trust() as doubts:
            adapter.advance(state, x, 4)
        assert len(doubts) == 1 and bool(doubts[0]) == fine
        with torch.no_grad():
            adapter.backbone.head.bias[1] = value
    with pytest.raises(ModelError, match="logits have NaN or infinite"):
        adapter.advance(state, x, 4)


@kernel
@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize(("each", "most"), [(False, 4096), (True, 1024)], ids=["whole", "parts"])
def test_mixture(partition: bool, each: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from labelmem.engines.triton import mix as kernels_mix
    from labelmem.engines.triton.mix import believed_by_model, mixed

    monkeypatch.setitem(kernels_mix._FORM, "WHOLE", most)
    g = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(5, 2995, generator=g)
    logits[4, 2990], logits[0, 7] = logits[4].max() + 1, -torch.inf
    r = torch.nn.functional.pad(torch.softmax(logits, dim=1), (0, 5))
    found, finite = believed_by_model(logits.to(DEVICE), 3000)
    torch.testing.assert_close(found.cpu(), r, rtol=1e-5, atol=1e-8)
    assert finite.tolist() == [False, True, True, True, True]
    s = torch.zeros(5, 3000)
    s[1, :3] = tensor_of([0.5, 0.2, 0.3]).cpu()
    s[2] = r[2].flip(0)  # nothing is left to the model
    s[3, 7] = 1.0
    theta = torch.rand(5, 3000 if each else 1, generator=g).expand(5, 3000)
    theta = torch.where(torch.arange(5)[:, None] == 3, 1.0, theta) if each else theta
    expected = F.mix(F.outside(r, s) if partition else r, s, theta)
    seen, highest = mixed(r.to(DEVICE), s.to(DEVICE), theta.to(DEVICE), partition)
    torch.testing.assert_close(seen.cpu(), expected, rtol=1e-5, atol=1e-7)
    assert torch.equal(highest, seen.topk(2, dim=1).values)


@kernel
@pytest.mark.parametrize(("slots", "hidden"), [(150, 16), (37, 5), (40, 20)])
def test_label_steps_and_their_gradients(slots: int, hidden: int) -> None:
    from labelmem.engines.triton.label import label_step

    g = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=g).to(DEVICE).requires_grad_()

    mu, r, s, shared = (
        drawn(N, slots, hidden), drawn(N, slots), drawn(N, slots), drawn(N, 3 * hidden)
    )  # fmt: skip
    weights = drawn(3 * hidden, hidden), drawn(3 * hidden), drawn(3 * hidden, 2), drawn(hidden)
    weights = (*weights, drawn())
    new, theta = label_step(mu, r, s, shared, weights, None)
    own = torch.stack([r, s], dim=-1) @ weights[2].T
    expected = gru(shared[:, None] + own, mu @ weights[0].T + weights[1], mu)
    gate = torch.sigmoid(expected @ weights[3] + weights[4])
    torch.testing.assert_close(new, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(theta, gate, rtol=0, atol=1e-5)
    by_new, by_theta = torch.randn_like(new), torch.randn_like(theta)
    inputs = [mu, r, s, shared, *weights]
    mine = torch.autograd.grad((new * by_new).sum() + (theta * by_theta).sum(), inputs)
    theirs = torch.autograd.grad((expected * by_new).sum() + (gate * by_theta).sum(), inputs)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    room = torch.empty_like(mu)
    with torch.no_grad():
        assert label_step(mu, r, s, shared, weights, room)[0] is room
    torch.testing.assert_close(room, expected, rtol=0, atol=1e-5)


@kernel
@pytest.mark.parametrize(
    ("slots", "hidden", "programs"),
    [(150, 16, 7), (37, 5, 1000), (9, 20, 1)],
    ids=["in turn", "at once", "step by step"],
)
def test_label_steps_along_a_stretch_and_their_gradients(
    slots: int, hidden: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelmem.engines.triton import label_along_gradient as kernels_label_along_gradient
    from labelmem.unrolling.theta import thetas

    monkeypatch.setattr(kernels_label_along_gradient, "_PROGRAMS", programs)
    combiner = random_combiner(hidden=hidden).to(DEVICE)
    assert isinstance(combiner, LabelCombiner)
    g = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=g).to(DEVICE)

    given = (drawn(2, slots, hidden), drawn(2, 3, slots), drawn(2, 3, slots))
    shared, by = drawn(2, 3, 3 * hidden).requires_grad_(), drawn(2, 3, slots)
    weights = [shared, *combiner.cell_weights()]
    found = []
    for way in (nullcontext(), plainly()):
        with way:
            theta, end = thetas(combiner, *given, shared)
            found.append([theta, end, *torch.autograd.grad((theta * by).sum(), weights)])
    assert not found[0][1].requires_grad
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@kernel
def test_scores_and_states_are_kept_where_something_was_seen() -> None:
    from labelmem.engines.triton.commit import keep_many

    g = torch.Generator().manual_seed(0)
    mask = torch.tensor([True, False, True], device=DEVICE)
    new, old = torch.zeros(3, 3002, 4, device=DEVICE), torch.ones(3, 3002, 4, device=DEVICE)
    r, s = torch.rand(2, 3, 3000, generator=g).to(DEVICE)
    y = r.argmax(dim=1)
    r[0, 2999] = r[0].max()  # two are the best
    s[2] = 0.0
    kept_r, kept_s = torch.full((2, 3, 3002), 7.0, device=DEVICE)
    missed = torch.full((3, 2), 5.0, device=DEVICE)
    keep_many(mask, y, (r, s), (kept_r, kept_s), new, old, missed)
    assert missed.tolist() == [[0, 1], [5, 5], [0, 1]]
    for kept, scores in ((kept_r, r), (kept_s, s)):
        assert torch.equal(kept[mask, 1:3001], scores[mask])
        assert bool((kept[1] == 7).all()) and bool((kept[:, [0, -1]] == 7).all())
    assert bool((new[mask] == 0).all()) and bool((new[1] == 1).all())


@kernel
@pytest.mark.parametrize("blocks", [(), (8, 8, 8), (3, 8, 5)], ids=["one", "alike", "unlike"])
def test_cosines_of_blocks(blocks: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    from labelmem.engines.triton import past as kernels_past

    monkeypatch.setattr(kernels_past, "_FORM", {"TILE": 64, "num_warps": 1})
    g, dim = torch.Generator().manual_seed(0), sum(blocks) or 6
    v = torch.randn(2, 40, dim, generator=g).to(DEVICE)
    h = torch.randn(2, dim, generator=g).to(DEVICE)
    v[0, 1] = 0.0
    used = torch.tensor([17, 3], device=DEVICE)
    cosine, own, size = kernels_past.block_cosines(v, used, 35, h, blocks)
    alive = (torch.arange(35, device=DEVICE) < used[:, None])[..., None]
    cells = v[:, :35] * alive
    torch.testing.assert_close(cosine, F.cosine(h, cells), rtol=1e-5, atol=1e-6)
    if blocks:
        expected = F.block_cosine(h, cells, blocks)
        torch.testing.assert_close(own, expected[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(size, expected[1], rtol=1e-5, atol=1e-6)


@kernel
def test_other_types_and_switched_off() -> None:
    x = torch.zeros(2, 3, device=DEVICE)
    assert kernels.fused(x) and not kernels.fused(x.double())
    with plainly():
        assert not kernels.fused(x)
