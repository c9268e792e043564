"""Tuning and fitting the default form: it is never below itself, and says what came of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from test_training import streams
from torch import nn
from toys import Stateless, random_stream, run

import labelmem.starting.replaying as replaying
import labelmem.tuning.climbing as climbing
from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.errors import (
    ConfigError,
    InputError,
    TeachesNothingWarning,
    UnsupportedError,
)
from labelmem.evaluation import evaluate
from labelmem.online import Recorded
from labelmem.recording import lockstep_batches, split_streams
from labelmem.replay import record
from labelmem.search import climb
from labelmem.starting import GUARD, HELD_OUT
from labelmem.training import fit
from labelmem.tuning import GRID, replay_loss, tune

KNOWN = 3


def plain_model(dim: int, seed: int = 0) -> nn.Linear:
    """A head that hardly says anything."""
    layer = nn.Linear(dim, KNOWN)
    with torch.no_grad():
        layer.weight.copy_(
            0.01 * torch.randn(KNOWN, dim, generator=torch.Generator().manual_seed(seed))
        )
        layer.bias.zero_()
    return layer


def places(n: int, seed: int, steps: int = 20, labels: int = KNOWN + 2) -> list[Recorded]:
    """Labels that lie where they lie for everyone: who knows it has a better beginning."""
    centres = 2 * torch.randn(labels, 4, generator=torch.Generator().manual_seed(5))
    g, out = torch.Generator().manual_seed(seed), []
    for _ in range(n):
        y = torch.randint(0, labels, (steps,), generator=g)
        out.append((centres[y] + 0.5 * torch.randn(steps, 4, generator=g), y.tolist()))
    return out


def rays(n: int, seed: int) -> list[Recorded]:
    """Labels are directions and lengths are anything: the cosines of LMN-fixed are made for it."""
    g = torch.Generator().manual_seed(seed)
    return [(x * torch.exp(3 * torch.randn(len(x), 1, generator=g)), y) for x, y in places(n, seed)]


def tables(n: int, seed: int, steps: int = 20, tokens: int = 4) -> list[Recorded]:
    """Every user has other labels for the same few inputs: no user says anything of another."""
    g, out = torch.Generator().manual_seed(seed), []
    for _ in range(n):
        meaning = torch.randint(0, KNOWN + 2, (tokens,), generator=g)
        x = torch.randint(0, tokens, (steps,), generator=g)
        out.append((torch.eye(tokens)[x], meaning[x].tolist()))
    return out


def noise(n: int, seed: int, steps: int = 20) -> list[Recorded]:
    """There is nothing to learn."""
    g = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(steps, 4, generator=g),
            torch.randint(0, KNOWN + 2, (steps,), generator=g).tolist(),
        )
        for _ in range(n)
    ]


TASKS = {"places": places, "rays": rays, "tables": tables, "noise": noise}


def figures(adapter: Adapter, recorded: Sequence[Recorded]) -> dict[str, float]:
    return evaluate(adapter, recorded).result().metrics


def predictions(adapter: Adapter, dim: int = 3) -> list[torch.Tensor]:
    return run(adapter.stream(), *random_stream(3, 12, range(KNOWN), ["emu"], inputs=dim))


def assert_alike(a: Adapter, b: Adapter, dim: int = 3) -> None:
    for p, q in zip(predictions(a, dim), predictions(b, dim), strict=True):
        assert torch.equal(p, q)


# ---------------------------------------------------------------- never below the default form


@pytest.mark.parametrize("metric", ["log_perplexity", "accuracy"])
@pytest.mark.parametrize("task", TASKS)
def test_tuning_is_never_below_the_default_form(task: str, metric: str) -> None:
    model, recorded = plain_model(4), TASKS[task](5, seed=1)
    adapter = Adapter(model)
    result = tune(adapter, recorded, trials=9, metric=metric)
    judges = split_streams(recorded, HELD_OUT, 0)[1]
    default, chosen = figures(Adapter(model), judges), figures(adapter, judges)
    sign = 1 if metric == "log_perplexity" else -1
    assert sign * chosen[metric] <= sign * default[metric] + 1e-6
    assert chosen["accuracy_seen"] >= default["accuracy_seen"] - GUARD
    for found, told in ((result.before, default), (result.after, chosen)):
        assert found.log_perplexity == pytest.approx(told["log_perplexity"], abs=1e-5)
        assert found.accuracy == pytest.approx(told["accuracy"])
        assert found.accuracy_known == pytest.approx(told["accuracy_seen"])
        assert found.accuracy_new == pytest.approx(told["accuracy_new"])
        assert found.steps == found.steps_known + found.steps_new == sum(len(y) for _, y in judges)
    loss = chosen[metric] if metric == "log_perplexity" else 1 - chosen[metric]
    assert result.loss == pytest.approx(loss, abs=1e-5)
    # Nor on streams that nothing has seen, but for what chance does to a few of them.
    other = TASKS[task](5, seed=2)
    default, chosen = figures(Adapter(model), other), figures(adapter, other)
    assert sign * chosen[metric] <= sign * default[metric] + 0.02


def test_what_other_users_showed_is_known_to_new_ones() -> None:
    model, other = plain_model(4), places(4, seed=2)
    tuned, fitted, default = Adapter(model), Adapter(model), Adapter(model)
    result, fit_result = tune(tuned, places(6, seed=1), trials=6), fit(fitted, places(6, seed=1))
    assert result.form.startswith("default primed")
    assert fit_result.best == min(fit_result.before, *fit_result.epochs) < fit_result.before
    before = figures(default, other)
    for adapter in (tuned, fitted):
        assert adapter.name == "lmn-online"
        after = figures(adapter, other)
        assert after["log_perplexity"] < before["log_perplexity"] - 0.1
        assert after["accuracy"] > before["accuracy"]


def test_lmn_fixed_is_chosen_where_it_is_better() -> None:
    model = plain_model(4)
    adapter = Adapter(model, memory=MemoryConfig(capacity=50))
    result = tune(adapter, rays(6, seed=1), trials=10)
    assert result.form == "LMN-fixed" and adapter.name == "lmn-fixed"
    assert adapter.combiner == result.best["theta"] and adapter.memory.lam == result.best["lam"]
    assert adapter.memory.capacity == 50
    other = rays(6, seed=2)
    after, before = figures(adapter, other), figures(Adapter(model), other)
    assert after["log_perplexity"] < before["log_perplexity"]
    assert result.before.log_perplexity > result.after.log_perplexity


def test_where_nothing_is_better_the_default_form_stays() -> None:
    """A model that is always right leaves nothing to gain."""
    model = nn.Linear(KNOWN, KNOWN)
    with torch.no_grad():
        model.weight.copy_(20 * torch.eye(KNOWN))
        model.bias.zero_()
    adapter, same, g = Adapter(model), Adapter(model), torch.Generator().manual_seed(0)
    labels = [torch.randint(0, KNOWN, (15,), generator=g) for _ in range(4)]
    online = adapter.online
    with pytest.warns(TeachesNothingWarning, match="new labels"):
        result = tune(adapter, [(torch.eye(KNOWN)[y], y) for y in labels], 9, "accuracy")
    assert (result.best, result.form) == ({}, "default") and result.loss == 0
    assert result.after is result.before
    assert adapter.online is online
    assert_alike(adapter, same, KNOWN)


def test_the_guard_keeps_known_labels() -> None:
    """Without it a new label that is everywhere would be worth all known ones."""
    x, g = torch.zeros(40, 4), torch.Generator().manual_seed(0)
    recorded: list[Recorded] = []
    for _ in range(6):
        emus = (torch.rand(40, generator=g) < 0.8).tolist()
        recorded.append((x, ["emu" if emu else 0 for emu in emus]))
    model = plain_model(4)
    nn.init.constant_(model.bias[0:1], 1.0)
    fixed = {"combiner": 0.02, "memory": MemoryConfig(lam=0.0)}
    lost = tune(Adapter(model, **fixed), recorded, trials=20)
    kept = tune(Adapter(model, **fixed), recorded, trials=20, guard=0.0)
    assert lost.after.accuracy_known < lost.before.accuracy_known
    assert kept.after.accuracy_known >= kept.before.accuracy_known
    result = tune(Adapter(model), recorded, trials=8)
    assert result.after.accuracy_known >= result.before.accuracy_known - GUARD
    for found in result.judged.values():
        assert found.steps == result.before.steps


# ---------------------------------------------------------------- the paper's forms


def old_tune(adapter: Adapter, recorded: list[Recorded], metric: str) -> list[dict[str, Any]]:
    """How LMN-fixed has always been tuned: one climb from its own settings."""
    batches = lockstep_batches(recorded, adapter.known, 64, adapter.device, adapter.dtype)
    features = [record(adapter, batch) for batch in batches]
    combiner, memory = adapter.combiner, adapter.memory
    theta = combiner.start if isinstance(combiner, Combiner) else combiner
    start = {"theta": theta, "lam": memory.lam, "delta": memory.delta, "margin": memory.margin}
    return climb(lambda point: replay_loss(adapter, point, features, metric), start, GRID, 25)


@pytest.mark.parametrize("metric", ["log_perplexity", "accuracy"])
@pytest.mark.parametrize("kind", ["fixed", "label"])
def test_lmn_fixed_is_tuned_as_ever(kind: str, metric: str) -> None:
    def made() -> Adapter:
        return Adapter(Stateless(), combiner=0.05 if kind == "fixed" else Combiner(kind=kind))

    adapter, recorded = made(), streams(10)
    log = old_tune(made(), recorded, metric)
    result = tune(adapter, recorded, trials=25, metric=metric)
    assert result.trials == log
    assert result.best | {"loss": result.loss} == min(log, key=lambda trial: float(trial["loss"]))
    assert result.form == "LMN-fixed"
    before, after = figures(made(), recorded), figures(adapter, recorded)
    for found, told in ((result.before, before), (result.after, after)):
        assert found.log_perplexity == pytest.approx(told["log_perplexity"], abs=1e-5)
        assert found.accuracy_new == pytest.approx(told["accuracy_new"])


def test_more_starts_find_at_least_as_much() -> None:
    recorded, losses = streams(10), []
    for starts in ([], [{"theta": 0.8, "lam": 20.0}, {"theta": 0.2}]):
        adapter = Adapter(Stateless(), combiner=0.05)
        result = tune(adapter, recorded, trials=400, starts=starts)
        losses.append(result.loss)
        tried = [{name: t[name] for name in ("theta", "lam")} for t in result.trials]
        assert all({"theta": 0.05, "lam": 5.0} | start in tried for start in starts)
    assert losses[1] <= losses[0]


@pytest.mark.parametrize(
    "bad", [{"starts": [{"depth": 1}]}, {"guard": -0.1}, {"held_out": 1.0}, {"held_out": 0.0}]
)
@pytest.mark.parametrize("combiner", [None, 0.5])
def test_tuning_refuses(bad: dict[str, Any], combiner: float | None) -> None:
    with pytest.raises(ConfigError):
        tune(Adapter(Stateless(), combiner=combiner), streams(3), **bad)


# ---------------------------------------------------------------- what it says


def test_the_result_is_readable() -> None:
    result = tune(Adapter(Stateless()), streams(6), trials=2)
    assert str(result) == result.summary()
    for word in ("chosen: " + result.form, "before", "after", "on known labels", "on new labels"):
        assert word in result.summary()
    assert f"{result.after.accuracy_new:.1%}" in result.summary() and "nan" not in str(result)
    assert result.form in repr(result) and "\n" not in repr(result)
    assert len(result.trials) <= 2
    assert {result.form, "default"} <= set(result.judged)


def taught(recorded: list[Recorded]) -> list[str]:
    """What fit and tune warn of; both say the same."""
    told = []
    for ask in (lambda a: a.fit(recorded), lambda a: a.tune(recorded, trials=1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask(Adapter(Stateless()))
        assert all(one.category is TeachesNothingWarning for one in caught)
        assert all(one.filename == __file__ for one in caught)
        told.append([str(one.message) for one in caught])
    assert told[0] == told[1]
    return told[0]


def test_streams_that_teach_nothing_are_told() -> None:
    x, y = random_stream(1, 12, range(4), ["emu"])
    good = [(x, y)] * 3
    assert taught(good) == []
    assert "only one recorded user" in taught(good[:1])[0]
    assert "1 of 4 recorded streams have no label" in taught([*good, (x[:0], [])])[0]
    assert "1 of 4 recorded streams have no label" in taught([*good, (x, [])])[0]
    assert "1 of 4 recorded streams have a single step" in taught([*good, (x[:1], [0])])[0]
    assert "learned about new labels" in taught([(x, [i % 4 for i in range(12)])] * 3)[0]
    assert len(taught([(x[:1], [0])])) == 3
    for nothing in ([], [(x, [])]):
        with pytest.raises(InputError, match="no sequences"):
            taught(nothing)


def test_the_only_stream_teaches_with_its_first_half() -> None:
    recorded = places(1, seed=1, steps=60)
    x, y = recorded[0]
    adapter, model = Adapter(plain_model(4)), plain_model(4)
    with pytest.warns(TeachesNothingWarning, match="first half of the stream teaches"):
        result = fit(adapter, recorded)
    after = figures(adapter, [(x[30:], y[30:])])["log_perplexity"]
    assert after == pytest.approx(result.best, abs=1e-5)
    before = figures(Adapter(model), [(x[30:], y[30:])])["log_perplexity"]
    assert before == pytest.approx(result.before, abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"epochs": 3}, {"checkpoint": "file"}, {"others": [(Stateless(), streams(2))]}, {"lr": 0.1}],
)
def test_what_only_a_combiner_can_be_told_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=f"{next(iter(options))}.*combiner=Combiner"):
        fit(Adapter(Stateless()), streams(4), **options)


def test_given_streams_judge() -> None:
    adapter, judges = Adapter(plain_model(4)), places(3, seed=2)
    result = fit(adapter, places(4, seed=1), validation=judges)
    assert figures(adapter, judges)["log_perplexity"] == pytest.approx(result.best, abs=1e-5)
    assert result.best < result.before


# ---------------------------------------------------------------- nothing half-done, nothing lost


@pytest.mark.parametrize("where", ["replay", "climb"])
def test_an_interrupt_leaves_the_adapter_as_it_was(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, same = Adapter(Stateless()), Adapter(Stateless())
    online, count = adapter.online, iter(range(1000))
    module, name = (replaying, "_steps") if where == "replay" else (climbing, "replay_point")
    original = getattr(module, name)

    def interrupted(*given: Any, **options: Any) -> Any:
        if next(count) == 3:
            raise KeyboardInterrupt
        return original(*given, **options)

    monkeypatch.setattr(module, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(adapter, streams(5), trials=8)
    assert adapter.online is online and adapter.name == "lmn-online"
    assert_alike(adapter, same)


def test_streams_that_have_begun_go_on_as_they_were() -> None:
    adapter, same = Adapter(plain_model(4)), Adapter(plain_model(4))
    x, y = places(1, seed=3)[0]
    stream, expected = adapter.stream(), same.stream()
    for one in (stream, expected):
        run(one, x[:10], y[:10])
    fit(adapter, places(5, seed=1))
    for p, q in zip(run(stream, x[10:], y[10:]), run(expected, x[10:], y[10:]), strict=True):
        assert torch.equal(p, q)


def test_training_examples_that_were_given_are_kept() -> None:
    """Learned weights do not undo what prime did, and a second fit can go on from the first."""
    adapter = Adapter(plain_model(4))
    x, y = places(1, seed=9, steps=60, labels=KNOWN)[0]
    adapter.prime(x, y)
    judges = places(3, seed=2)
    primed = figures(adapter, judges)["log_perplexity"]
    for seed in (1, 7):
        result = fit(adapter, places(4, seed=seed), validation=judges)
        assert result.before == pytest.approx(primed, abs=1e-5)
        primed = figures(adapter, judges)["log_perplexity"]
        assert result.best == pytest.approx(primed, abs=1e-5) and result.best <= result.before
