"""The adapter: the whole of Eq. 1 to 5 against the oracle, and what it does to the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from oracle.lmn import OracleConfig, OracleLMN
from slow import assert_follows_the_oracle, oracle_config, softmax
from torch import nn
from toys import (
    KINDS,
    Bare,
    Recurrent,
    Stateless,
    assert_same,
    cells_in,
    hooks_of,
    make_adapter,
    random_combiner,
    random_stream,
    run,
    snapshot,
    unchanged,
)

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.errors import ClosedError, ConfigError, LabelMemError, MismatchError
from labelmem.storage import load_state, save_state

# ---------------------------------------------------------------- agreement: 1e-5 over 1,000 steps

LONG: dict[str, tuple[type[nn.Module], MemoryConfig, float | dict[str, Any]]] = {
    "LMN-fixed as in the paper": (Stateless, MemoryConfig(), 0.5),
    "LMN-fixed, every switch the other way": (
        Recurrent,
        MemoryConfig(
            lam=8.0,
            delta=0.5,
            margin=0.3,
            decay=0.95,
            cells_per_label=3,
            capacity=9,
            write_lam=False,
            evict="weight",
        ),
        0.35,
    ),
    "LMN": (Stateless, MemoryConfig(cells_per_label=2), {"seed": 7}),
    "LMN, recurrent, at capacity": (
        Recurrent,
        MemoryConfig(cells_per_label=None, capacity=7, margin=2.0),
        {"seed": 8},
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_thousand_steps_follow_the_oracle(name: str) -> None:
    model, memory, combiner = LONG[name]
    gate = random_combiner(hidden=3, **combiner) if isinstance(combiner, dict) else combiner
    adapter = Adapter(model(), labels="abcd", memory=memory, combiner=gate)
    x, ys = random_stream(11, 1000, "abcd", ["emu", ("place", 3), -1])
    stream, oracle = assert_follows_the_oracle(adapter, x, ys, 1e-5)
    assert cells_in(stream) == len(oracle.lmn.memory.cells) > 4
    assert oracle.lmn.labels == [*"abcd", "emu", ("place", 3), -1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_follows_the_oracle(adapter: Adapter) -> None:
    x, ys = random_stream(12, 100, range(4), ["emu", "owl"])
    assert_follows_the_oracle(adapter, x, ys, 1e-5)


@pytest.mark.parametrize("margin", [-1.0, 0.0, 30.0])
@pytest.mark.parametrize("lam, delta", [(0.0, 1.0), (5.0, 0.0), (0.0, 0.0), (200.0, 2.0)])
def test_corner_options_follow_the_oracle(margin: float, lam: float, delta: float) -> None:
    memory = MemoryConfig(lam=lam, delta=delta, margin=margin, cells_per_label=2, capacity=6)
    adapter = Adapter(Stateless().double(), memory=memory, combiner=0.6)
    x, ys = random_stream(13, 40, range(4), ["emu"])
    assert_follows_the_oracle(adapter, x.double(), ys, 1e-9)


@pytest.mark.parametrize("cells_per_label", [1, 2, None])
def test_few_shot_follows_the_oracle(cells_per_label: int | None) -> None:
    memory = MemoryConfig(cells_per_label=cells_per_label, capacity=9)
    stream = Adapter(nn.Identity(), labels=(), memory=memory).stream()
    slow = OracleLMN([], oracle_config(memory), 0.5)
    x, ys = random_stream(14, 150, ["a"], ["b", 3, 4.5, "c"])
    for t, y in enumerate(ys):
        p, expected = stream.predict(x[t]), slow.predict(x[t].tolist(), None)
        assert p.labels == list(expected["P"])
        assert p.probs.tolist() == pytest.approx(list(expected["P"].values()), abs=1e-5)
        stream.observe(y)
        slow.observe(y)


@pytest.mark.parametrize("theta", [0.0, 0.4, 1.0])
def test_a_partition_leaves_the_labels_in_memory_to_the_memory(theta: float) -> None:
    stream = Adapter(Stateless(), partition=True, combiner=theta).stream()
    x, ys = random_stream(17, 60, range(4), ["emu"])
    for t, y in enumerate(ys):
        p = stream.predict(x[t])
        assert p.model_probs is not None and p.memory_probs is not None
        rest = p.model_probs.double() * (p.memory_probs == 0)
        rest /= rest.sum() if rest.any() else 1.0
        P = (1 - theta) * rest + theta * p.memory_probs.double()
        if not p.memory_probs.any():
            P = p.model_probs.double()
        elif not P.any():  # the model is asked alone, but has no label left to speak of
            P = p.memory_probs.double()
        assert p.probs.tolist() == pytest.approx((P / P.sum()).tolist(), abs=1e-5)
        stream.observe(y)


def test_a_key_takes_the_place_of_h_in_the_memory_alone() -> None:
    def key(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, h[:, :1]], dim=1)

    model = Stateless()
    stream = Adapter(model, key=key, combiner=0.4).stream()
    slow = OracleLMN(range(4), OracleConfig(), 0.4)
    x, ys = random_stream(15, 60, range(4), ["emu"])
    for t, y in enumerate(ys):
        with torch.no_grad():
            h, _ = model.features(x[t][None])
            r = softmax(model.head(h)[0].tolist())
        p = stream.predict(x[t])
        expected = slow.predict(key(x[t][None], h)[0].tolist(), dict(enumerate(r)))
        assert p.probs.tolist() == pytest.approx(list(expected["P"].values()), abs=1e-5)
        stream.observe(y)
        slow.observe(y)
    assert stream.tensors()["memory.v"].shape[2] == 4


def test_a_key_that_answers_nonsense_changes_nothing() -> None:
    answers = iter([1.0, math.nan])
    adapter = Adapter(Stateless(), combiner=random_combiner(), key=lambda x, h: h * next(answers))
    stream = adapter.stream()
    stream.predict(torch.ones(3))
    stream.observe("emu")
    with unchanged(stream), pytest.raises(LabelMemError, match="NaN"):
        stream.predict(torch.ones(3))
        stream.observe("emu")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_says_what_the_cpu_says(kind: str, tmp_path: Path) -> None:
    x, ys = random_stream(16, 60, range(4), ["emu", "owl"])
    cpu, cuda = make_adapter(kind), make_adapter(kind)
    cuda.backbone.model.cuda()
    cuda.combiner = cuda.combiner  # the combiner follows the model
    here, there = cpu.stream(), cuda.stream()
    for t, y in enumerate(ys):
        p = there.predict(x[t])
        assert p.probs.device.type == "cuda"
        assert p.probs.tolist() == pytest.approx(here.predict(x[t]).probs.tolist(), abs=1e-5)
        here.observe(y)
        there.observe(y)
    batch = cuda.streams(2)
    assert batch.predict(x[:2]).shape == (2, 4)
    batch.observe(["emu", 1], mask=[True, False])
    there.save(tmp_path / "s")
    moved = cpu.load_stream(tmp_path / "s").predict(x[0]).probs
    assert moved.tolist() == pytest.approx(there.predict(x[0]).probs.tolist(), abs=1e-5)
    back = cuda.load_stream(tmp_path / "s").predict(x[0]).probs
    assert torch.equal(back, there.predict(x[0]).probs)


# ---------------------------------------------------------------- the model is only borrowed


def test_the_head_is_found_named_or_given() -> None:
    x, ys = random_stream(1, 5, range(4))
    model = Stateless()
    expected = run(Adapter(model).stream(), x, ys)
    for head in ("head", model.head):
        assert torch.equal(run(Adapter(model, head=head).stream(), x, ys)[-1], expected[-1])


def test_weights_and_buffers_are_untouched(kind: str) -> None:
    adapter = make_adapter(kind)
    learned = adapter.combiner if isinstance(adapter.combiner, Combiner) else nn.Identity()
    modules = (adapter.backbone.model, learned)
    before = [{k: v.clone() for k, v in module.state_dict().items()} for module in modules]
    run(adapter.stream(), *random_stream(2, 20, range(4), ["emu"]))
    for was, module in zip(before, modules, strict=True):
        assert all(torch.equal(was[k], v) for k, v in module.state_dict().items())
        assert all(p.grad is None for p in module.parameters())


def test_batch_statistics_stay_as_trained() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).train()
    before = model[1].running_mean.clone()
    run(Adapter(model).stream(), *random_stream(2, 5, range(2)))
    assert torch.equal(model[1].running_mean, before)


def test_closing_removes_the_hook_and_restores_every_mode() -> None:
    model = Stateless().train()
    model.body.eval()
    adapter = Adapter(model)
    assert not any(module.training for module in model.modules())
    assert len(hooks_of(model)) == 1
    adapter.close()
    adapter.close()
    assert not hooks_of(model)
    assert model.training and model.dropout.training and not model.body.training
    with Adapter(model) as adapter:
        assert not model.training
    assert model.training and not hooks_of(model)


def test_a_model_put_in_training_mode_still_predicts_in_eval_mode(kind: str) -> None:
    x = torch.ones(3)
    adapter = make_adapter(kind)
    stream = adapter.stream()
    expected = stream.predict(x).probs
    adapter.backbone.model.train()
    assert torch.equal(stream.predict(x).probs, expected)


def test_one_layer_put_in_training_mode_still_predicts_in_eval_mode() -> None:
    model = Stateless()
    stream = Adapter(model).stream()
    expected = stream.predict(torch.ones(3)).probs
    model.dropout.train()
    seen = [stream.predict(torch.ones(3)).probs for _ in range(5)]
    assert all(torch.equal(probs, expected) for probs in seen)


def test_two_adapters_of_one_model_do_not_disturb_each_other() -> None:
    model = Stateless().train()
    x, ys = random_stream(3, 10, range(4), ["emu"])
    first, second = Adapter(model, combiner=0.2), Adapter(model, combiner=0.7)
    expected = run(second.stream(), x, ys)
    run(first.stream(), x, ys)
    first.close()
    assert torch.equal(run(second.stream(), x, ys)[-1], expected[-1])
    assert len(hooks_of(model)) == 1


def test_an_adapter_that_cannot_be_made_leaves_the_model_alone() -> None:
    failing: list[dict[str, Any]] = [
        {"labels": ["too", "few"]},
        {"labels": ["twice", "twice", "c", "d"]},
        {"combiner": 1.5},
        {"combiner": Combiner().build(dim=99)},
        {"head": "nowhere"},
    ]
    for options in failing:
        model = Stateless().train()
        with pytest.raises((ValueError, TypeError)):
            Adapter(model, **options)
        assert not hooks_of(model), options
        assert model.training and model.dropout.training, options


# ---------------------------------------------------------------- options, saving


def test_the_combiner_may_be_replaced_and_is_checked() -> None:
    adapter = make_adapter("fixed")
    assert adapter.name == "lmn-fixed"
    adapter.combiner = random_combiner()
    assert adapter.name == "lmn"
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ConfigError, match="combiner is"):
            adapter.combiner = wrong
    assert adapter.name == "lmn"
    with pytest.raises(ConfigError, match="no model score"):
        Adapter(nn.Identity(), labels=(), combiner=Combiner())


def test_a_variant_shares_the_model_and_nothing_else() -> None:
    adapter = make_adapter("fixed")
    other = adapter.variant(MemoryConfig(lam=1.0), random_combiner())
    assert (other.memory.lam, other.name) == (1.0, "lmn")
    assert (adapter.memory.lam, adapter.name) == (5.0, "lmn-fixed")
    x, ys = random_stream(4, 10, range(4))
    fresh = Adapter(Stateless(), memory=MemoryConfig(lam=1.0), combiner=random_combiner())
    assert torch.equal(run(other.stream(), x, ys)[-1], run(fresh.stream(), x, ys)[-1])


@pytest.mark.parametrize("margin", [-0.5, math.inf])
def test_a_saved_adapter_is_the_same_adapter(kind: str, margin: float, tmp_path: Path) -> None:
    memory = MemoryConfig(lam=3.3, delta=0.7, margin=margin, cells_per_label=3, capacity=8)
    saved = make_adapter(kind, memory)
    saved.save(tmp_path / "adapter")
    x, ys = random_stream(5, 30, range(4), ["emu"])
    like = {"recurrent": ["recurrent", "recurrent dense"], "stream": ["stream", "dense"]}
    for start in like.get(kind.split()[0], ["fixed", "dense"]):
        other = make_adapter(start, partition=kind.endswith("partition"))
        other.load(tmp_path / "adapter")
        assert (other.memory, other.name) == (memory, saved.name)
        pairs = zip(run(other.stream(), x, ys), run(saved.stream(), x, ys), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("primed", [False, True])
def test_a_learned_beginning_is_saved(primed: bool, tmp_path: Path) -> None:
    model, recorded = Stateless(), [random_stream(s, 25, range(4), ["emu"]) for s in range(6)]
    saved, other = Adapter(model), Adapter(model, combiner=0.5)
    if primed:
        saved.prime(*random_stream(20, 40, range(4)))
    result = saved.fit(recorded[:4], validation=recorded[:4])  # better there without doubt
    assert result.best < result.before
    saved.save(tmp_path / "adapter")
    other.load(tmp_path / "adapter")
    assert other.name == "lmn-online"
    for probs in zip(*(run(one.stream(), *recorded[5]) for one in (saved, other)), strict=True):
        assert torch.equal(*probs)
    stream = saved.stream()
    run(stream, recorded[5][0][:10], recorded[5][1][:10])
    stream.save(tmp_path / "stream")
    loaded = other.load_stream(tmp_path / "stream")
    rest = recorded[5][0][10:], recorded[5][1][10:]
    for probs in zip(run(stream, *rest), run(loaded, *rest), strict=True):
        assert torch.equal(*probs)
    fresh = run(Adapter(model).stream(), *recorded[5])
    assert not torch.equal(fresh[-1], run(other.stream(), *recorded[5])[-1])


def test_a_beginning_of_another_version_is_refused(tmp_path: Path) -> None:
    """What new streams begin with has one weight for each feature there is."""
    adapter, path = Adapter(Stateless()), tmp_path / "adapter"
    adapter.save(path)
    tensors, meta = load_state(path, "adapter")
    save_state(path, "adapter", tensors, meta | {"start": {"start": [1.0], "noise": 0.1}})
    online = adapter.online
    with pytest.raises(MismatchError, match="other features"):
        adapter.load(path)
    assert adapter.online is online
    save_state(path, "adapter", tensors, {k: v for k, v in meta.items() if k != "start"})
    adapter.load(path)  # as files were before there was anything to learn


def test_a_file_that_does_not_load_changes_nothing(tmp_path: Path) -> None:
    make_adapter("dense").save(tmp_path / "dense")
    tensors, meta = load_state(tmp_path / "dense", "adapter")
    tensors.pop("weight_theta")
    save_state(tmp_path / "part", "adapter", tensors, meta)
    adapter = make_adapter("stream", MemoryConfig(lam=3.0))
    before = adapter.combiner
    with pytest.raises(RuntimeError, match="weight_theta"):
        adapter.load(tmp_path / "part")
    assert adapter.combiner is before and adapter.memory == MemoryConfig(lam=3.0)


def test_a_stream_keeps_the_options_it_began_with(tmp_path: Path) -> None:
    adapter, same = make_adapter("fixed"), make_adapter("fixed")
    stream, expected = adapter.stream(), same.stream()
    x, ys = random_stream(6, 30, range(4), ["emu"])
    for one in (stream, expected):
        run(one, x[:10], ys[:10])
    adapter.memory = MemoryConfig(lam=0.0, cells_per_label=1)
    assert torch.equal(run(stream, x[10:], ys[10:])[-1], run(expected, x[10:], ys[10:])[-1])
    # So the file says what the stream is, not what the adapter has become.
    stream.save(tmp_path / "s")
    assert_same(snapshot(same.load_stream(tmp_path / "s")), snapshot(stream))
    with pytest.raises(MismatchError, match="cells_per_label"):
        adapter.load_stream(tmp_path / "s")


def test_a_stream_cannot_go_on_with_another_combiner(tmp_path: Path) -> None:
    make_adapter("dense").save(tmp_path / "dense")
    adapter = make_adapter("fixed")
    stream = adapter.stream()
    stream.predict(torch.ones(3))
    adapter.load(tmp_path / "dense")
    with unchanged(stream), pytest.raises(LabelMemError, match="combiner"):
        stream.predict(torch.ones(3))
    stream = adapter.stream()
    stream.predict(torch.ones(3))
    adapter.combiner = 0.5
    with unchanged(stream), pytest.raises(LabelMemError, match="combiner"):
        stream.observe(1)


def test_streams_work_inside_and_outside_of_inference_mode(kind: str) -> None:
    x, ys = random_stream(8, 30, range(4), ["emu", "owl"])
    stream, expected = make_adapter(kind).stream(), make_adapter(kind).stream()
    with torch.inference_mode():
        run(stream, x[:10], ys[:10])
    run(stream, x[10:20], ys[10:20])
    with torch.inference_mode():
        run(stream, x[20:], ys[20:])
    run(expected, x, ys)
    assert_same(snapshot(stream), snapshot(expected))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_models_work(dtype: torch.dtype) -> None:
    memory = MemoryConfig(cells_per_label=2, capacity=5)
    adapter = Adapter(Stateless().to(dtype), memory=memory, combiner=random_combiner())
    x, ys = random_stream(9, 30, range(4), ["emu"])
    for probs in run(adapter.stream(), x, ys):
        assert probs.dtype == dtype and float(probs.sum()) == pytest.approx(1.0, abs=0.01)


def test_nothing_runs_after_closing(adapter: Adapter) -> None:
    stream, batch = adapter.stream(), adapter.streams(2)
    adapter.close()
    for call in (
        adapter.stream,
        lambda: adapter.streams(2),
        lambda: stream.predict(torch.ones(3)),
        lambda: batch.predict(torch.ones(2, 3)),
    ):
        with pytest.raises(ClosedError, match=r"was closed.*make a new one"):
            call()


class Dictionary(nn.Module):
    """Takes {"a": floats, "b": (whole numbers,)}."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Bare()

    def forward(self, x: dict[str, Any]) -> torch.Tensor:
        return self.inner(x["a"] + x["b"][0].float())


@pytest.mark.parametrize("a", [np.array([0.5, 0.0, 1.0]), [0.5, 0.0, 1.0]])
def test_inputs_may_be_dictionaries_of_arrays_and_lists(a: Any) -> None:
    p = Adapter(Dictionary()).stream().predict({"a": a, "b": (torch.tensor([1, 2, 3]),)})
    q = Adapter(Bare()).stream().predict([1.5, 2.0, 4.0])
    assert torch.equal(p.probs, q.probs)


def test_a_batch_of_dictionaries() -> None:
    batch = Adapter(Dictionary()).streams(2)
    X = {"a": torch.rand(2, 3), "b": (torch.ones(2, 3, dtype=torch.int64),)}
    q = Adapter(Bare()).streams(2)
    assert torch.equal(batch.predict(X), q.predict(X["a"] + 1))
