from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import Recurrent, Stateless, hooks_of, random_combiner

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.errors import (
    ConfigError,
    InputError,
    LabelMemError,
    MismatchError,
    ModelError,
    UnsupportedError,
)
from labelmem.evaluation import evaluate
from labelmem.online import Recorded
from labelmem.recording import lockstep_batches
from labelmem.replay import record, replay
from labelmem.training import fit
from labelmem.tuning import apply, tune

FIT = {"epochs": 3, "batch_size": 4, "truncate": 5, "lr": 0.05}


def streams(n: int, seed: int = 0, labels: int = 7) -> list[Recorded]:
    """Users with two favourite labels each, some beyond the model's four."""
    g = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(labels, 3, generator=torch.Generator().manual_seed(99))
    out: list[Recorded] = []
    for _ in range(n):
        steps = int(torch.randint(6, 16, (1,), generator=g))
        favourites = torch.randperm(labels, generator=g)[:2]
        y = favourites[torch.randint(0, 2, (steps,), generator=g)]
        out.append((centres[y] + 0.3 * torch.randn(steps, 3, generator=g), y.tolist()))
    return out


def lmn(model: torch.nn.Module | None = None, **options: object) -> Adapter:
    combiner = Combiner(kind="label", hidden=6, seed=3, **options)  # type: ignore[arg-type]
    return Adapter(model or Stateless(), combiner=combiner)


def weights(adapter: Adapter) -> dict[str, Tensor]:
    assert isinstance(adapter.combiner, Combiner)
    return {name: t.clone() for name, t in adapter.combiner.state_dict().items()}


def test_replay_gives_the_figures_of_evaluate() -> None:
    for model in (Stateless(), Recurrent()):
        adapter, recorded = lmn(model), streams(9)
        batches = lockstep_batches(recorded, adapter.known, 4, adapter.device, adapter.dtype)
        with torch.no_grad():
            steps = [s for b in batches for s in replay(adapter, record(adapter, b))]
        mean = float(sum(s.loss.sum() for s in steps)) / sum(s.tokens for s in steps)
        done = evaluate(adapter, recorded, batch_size=3)
        assert mean == pytest.approx(done.metrics.running, abs=1e-5)
        hits = sum(int(s.hit.sum()) for s in steps)
        result = done.result()
        assert hits / result.tokens == pytest.approx(result.metrics["accuracy"])


def test_batches_do_not_change_the_figures() -> None:
    adapter, recorded = lmn(), streams(7)
    one, many = (evaluate(adapter, recorded, batch_size=n).result() for n in (1, 7))
    assert one.metrics == pytest.approx(many.metrics, abs=1e-6)


def test_tuning_improves_and_sets_what_it_found() -> None:
    adapter, recorded = Adapter(Stateless(), combiner=0.02), streams(12)
    before = evaluate(adapter, recorded).metrics.running
    result = tune(adapter, recorded, trials=25)
    assert len(result.trials) <= 25
    assert result.loss < before
    assert adapter.combiner == result.best["theta"]
    assert adapter.memory.lam == result.best["lam"]
    assert evaluate(adapter, recorded).metrics.running == pytest.approx(result.loss, abs=1e-5)


def test_tuning_for_accuracy_counts_misses() -> None:
    adapter, recorded = Adapter(Stateless(), combiner=0.02), streams(8)
    result = tune(adapter, recorded, trials=10, metric="accuracy")
    accuracy = evaluate(adapter, recorded).result().metrics["accuracy"]
    assert result.loss == pytest.approx(1 - accuracy)


def test_tuning_a_combiner_makes_it_lmn_fixed_at_the_chosen_theta() -> None:
    adapter, recorded = lmn(), streams(8)
    fixed = Adapter(Stateless(), combiner=0.5)
    a, b = (tune(each, recorded, trials=8) for each in (adapter, fixed))
    assert a.best == b.best
    assert evaluate(adapter, recorded).metrics.running == pytest.approx(
        evaluate(fixed, recorded).metrics.running, abs=1e-6
    )


@pytest.mark.parametrize("bad", [{"metric": "mrr"}, {"grid": {"depth": [1]}}, {"trials": 0}])
def test_tuning_refuses(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        tune(Adapter(Stateless()), streams(3), **bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [0.0, 0.05])
@pytest.mark.parametrize("model", [Stateless, Recurrent])
def test_fitting_lowers_the_validation_loss_and_leaves_the_model_alone(
    model: type[torch.nn.Module], threshold: float
) -> None:
    adapter = lmn(model(), active_threshold=threshold)
    held = {name: t.clone() for name, t in adapter.backbone.model.state_dict().items()}
    result = fit(adapter, streams(24), validation=streams(8, seed=1), **FIT)
    assert result.best < result.before
    assert result.best == min([result.before, *result.epochs])
    after = evaluate(adapter, streams(8, seed=1)).metrics.running
    assert after == pytest.approx(result.best, abs=1e-4)
    now = adapter.backbone.model.state_dict()
    assert all(torch.equal(now[name], t) for name, t in held.items())


def test_joint_training_moves_the_model_too() -> None:
    adapter = lmn(Recurrent())
    held = {name: t.clone() for name, t in adapter.backbone.model.state_dict().items()}
    result = fit(adapter, streams(24), validation=streams(8, seed=1), train_model=True, **FIT)
    assert result.best < result.before
    now = adapter.backbone.model.state_dict()
    assert any(not torch.equal(now[name], t) for name, t in held.items())


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("learned", [False, True])
def test_the_kernel_is_learned_only_on_request(learned: bool, cells: int) -> None:
    memory = MemoryConfig(cells_per_label=cells)
    adapter = Adapter(Stateless(), memory=memory, combiner=Combiner(kind="label", hidden=6, seed=3))
    fit(adapter, streams(16), validation=streams(4, seed=1), learn_kernel=learned, **FIT)
    moved = (adapter.memory.lam, adapter.memory.delta) != (5.0, 1.0)
    assert moved == learned
    assert math.isfinite(adapter.memory.lam) and adapter.memory.delta >= 0


def test_the_gradient_is_that_of_the_mixture_by_finite_differences() -> None:
    model = Stateless().double()
    adapter = Adapter(
        model, combiner=Combiner(kind="label", hidden=3, seed=1), memory=MemoryConfig(margin=50.0)
    )
    combiner = adapter.combiner
    assert isinstance(combiner, Combiner)
    with torch.no_grad():
        combiner.weight_theta.copy_(torch.tensor([0.5, -0.3, 0.2]))
    batch = next(lockstep_batches(streams(2), adapter.known, 2, adapter.device, adapter.dtype))
    features = record(adapter, batch)

    def loss() -> Tensor:
        return torch.stack([step.loss.sum() for step in replay(adapter, features)]).sum()

    loss().backward()  # type: ignore[no-untyped-call]
    for parameter in (combiner.weight_scores, combiner.weight_mu, combiner.bias_theta):
        gradient, flat = parameter.grad, parameter.data.view(-1)
        assert gradient is not None
        for i in range(0, flat.numel(), max(1, flat.numel() // 3)):
            around = []
            for step in (1e-5, -1e-5):
                flat[i] += step
                with torch.no_grad():
                    around.append(float(loss()))
                flat[i] -= step
            slope = (around[0] - around[1]) / 2e-5
            assert float(gradient.view(-1)[i]) == pytest.approx(slope, abs=1e-5)


def test_the_seed_decides_everything() -> None:
    runs = []
    for seed in (0, 0, 1):
        adapter = lmn()
        fit(adapter, streams(12), seed=seed, **FIT)
        runs.append(weights(adapter))
    assert all(torch.equal(runs[0][k], runs[1][k]) for k in runs[0])
    assert any(not torch.equal(runs[0][k], runs[2][k]) for k in runs[0])


def test_an_interrupted_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    straight, resumed, path = lmn(), lmn(), tmp_path / "b"
    with pytest.MonkeyPatch.context() as patch:
        updates = steps_until_interrupt(patch, math.inf)
        whole = fit(straight, streams(12), checkpoint=tmp_path / "a", **FIT)
    an_epoch, left = divmod(updates[0], FIT["epochs"])
    assert an_epoch > 1 and not left
    with pytest.MonkeyPatch.context() as patch:
        steps_until_interrupt(patch, 2 * an_epoch - 1)  # in the second of three
        with pytest.raises(KeyboardInterrupt):
            fit(lmn(), streams(12), checkpoint=path, **FIT)
    with pytest.MonkeyPatch.context() as patch:
        more = steps_until_interrupt(patch, math.inf)
        again = fit(resumed, streams(12), checkpoint=path, **FIT)
    assert again == whole and more == [2 * an_epoch]
    assert all(torch.equal(weights(resumed)[k], t) for k, t in weights(straight).items())


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    fit(lmn(), streams(12), checkpoint=path, **FIT)
    with pytest.raises(MismatchError, match="another training"):
        fit(lmn(), streams(12), checkpoint=path, **(FIT | {"lr": 0.01}))


@pytest.mark.parametrize("n", [1, 129])
def test_any_number_of_streams_is_fitted(n: int) -> None:
    """The last of the batches that are read first holds one stream only."""
    adapter = Adapter(Stateless(), combiner=Combiner(kind="stream", hidden=4, rescorer=4))
    result = fit(adapter, streams(n), validation=streams(2, seed=1), epochs=1, truncate=100)
    assert math.isfinite(result.best)


def test_one_stream_teaches_what_two_of_its_kind_do() -> None:
    fitted = []
    for copies in (1, 2):
        adapter = Adapter(Stateless(), combiner=Combiner(kind="stream", hidden=4, rescorer=4))
        fit(adapter, streams(1) * copies, validation=streams(2, seed=1), epochs=1, truncate=100)
        fitted.append(weights(adapter))
    for name, t in fitted[0].items():
        torch.testing.assert_close(t, fitted[1][name], rtol=1e-3, atol=1e-4, msg=name)


def steps_until_interrupt(patch: pytest.MonkeyPatch, most: float) -> list[int]:
    """Interrupt the training once it has made so many updates; the count so far."""
    count, original = [0], torch.optim.AdamW.step

    def step(self: torch.optim.AdamW, *given: Any) -> Any:
        if count[0] >= most:
            raise KeyboardInterrupt
        count[0] += 1
        return original(self, *given)

    patch.setattr(torch.optim.AdamW, "step", step)
    return count


@pytest.mark.parametrize("kind, margin", [("label", 1.0), ("stream", 1.0), ("stream", math.inf)])
@pytest.mark.parametrize("joint", [False, True])
def test_an_interrupted_fit_leaves_the_best_epoch_so_far(
    kind: str, margin: float, joint: bool
) -> None:
    def made() -> Adapter:
        options = {"dropout": 0.5} if kind == "stream" else {}
        combiner = Combiner(kind=kind, hidden=4, seed=3, **options)
        return Adapter(Stateless(), memory=MemoryConfig(margin=margin), combiner=combiner)

    def predicted(adapter: Adapter) -> Tensor:
        stream = adapter.stream()
        for y in ("emu", 1):
            stream.predict(torch.ones(3))
            stream.observe(y)
        p = stream.predict(torch.ones(3)).probs
        assert torch.equal(p, stream.predict(torch.ones(3)).probs)
        return p

    options = FIT | {"epochs": 2, "lr": 0.01, "train_model": joint}
    whole, patched = made(), pytest.MonkeyPatch()
    with patched.context() as patch:
        updates = steps_until_interrupt(patch, math.inf)
        assert fit(whole, streams(16), validation=streams(4, seed=1), **options).best > 0
    for most, expected in ((2, made()), (updates[0] + 2, whole)):
        adapter, before = made(), torch.get_rng_state()
        with patched.context() as patch:
            steps_until_interrupt(patch, most)
            with pytest.raises(KeyboardInterrupt):
                fit(adapter, streams(16), validation=streams(4, seed=1), **options | {"epochs": 3})
        assert isinstance(adapter.combiner, Combiner)
        assert not any(module.training for module in adapter.combiner.modules())
        assert not any(module.training for module in adapter.backbone.model.modules())
        assert torch.equal(predicted(adapter), predicted(expected))
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("learn_kernel", [False, True])
def test_streams_that_cannot_be_read_leave_the_adapter_as_it_was(learn_kernel: bool) -> None:
    adapter = Adapter(Stateless(), combiner=random_combiner(kind="stream"))
    bad = [(torch.full((4, 3), torch.nan), [0, 1, 2, 3])]
    before, memory = weights(adapter), adapter.memory
    for train, valid in ((bad, streams(2)), (streams(4), bad), (streams(4), [])):
        with pytest.raises(LabelMemError):
            fit(adapter, train, validation=valid, learn_kernel=learn_kernel, **FIT)
        assert all(torch.equal(weights(adapter)[name], t) for name, t in before.items())
        assert adapter.memory == memory
        stream = adapter.stream()
        assert torch.equal(*(stream.predict(torch.ones(3)).probs for _ in range(2)))


def state_of(model: torch.nn.Module) -> list[Any]:
    """Mode and hooks of every module."""
    return [(module.training, len(hooks_of(module))) for module in model.modules()]


@pytest.mark.parametrize("kind", ["label", "stream"])
@pytest.mark.parametrize("ends", ["well", "interrupted", "unread", "unfit"])
def test_other_models_are_given_back_as_they_came(kind: str, ends: str) -> None:
    others = [Stateless(seed=1), Stateless(seed=2).eval(), Stateless(seed=3)]
    others[0].dropout.eval()
    before = [state_of(model) for model in others]
    own = Stateless()
    adapter = Adapter(own, combiner=Combiner(kind=kind, hidden=4))
    given: list[Any] = [(model, streams(4)) for model in others]
    if ends == "unread":
        given[1] = (others[1], [(torch.zeros(2, 3), [1])])
    if ends == "unfit":
        given.append((Stateless(seed=4).double(), streams(4)))
    if ends == "well":
        fit(adapter, streams(4), validation=streams(2), others=given, **FIT)
    else:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(BaseException) as caught:
            steps_until_interrupt(patch, 1)
            fit(adapter, streams(4), validation=streams(2), others=given, **FIT)
        expected = {"interrupted": KeyboardInterrupt, "unread": InputError, "unfit": ModelError}
        assert caught.type is expected[ends]
    assert [state_of(model) for model in others] == before
    assert adapter.stream().predict(torch.ones(3)).probs.dtype == torch.float32
    adapter.close()
    assert state_of(own) == state_of(Stateless())


@pytest.mark.parametrize("margin", [1.0, math.inf])
def test_a_second_fit_starts_where_the_first_ended(margin: float) -> None:
    adapter = Adapter(
        Stateless(), memory=MemoryConfig(margin=margin), combiner=Combiner(hidden=4, rescorer=4)
    )
    valid = streams(4, seed=1)
    first = fit(adapter, streams(8), validation=valid, **FIT)
    other = [(3 * x + 1, y) for x, y in streams(8, seed=2)]
    again = fit(adapter, other, validation=valid, **FIT | {"epochs": 1})
    assert first.best < first.before
    assert again.before == pytest.approx(first.best, abs=1e-5)


def test_the_kernel_is_learned_from_the_streams_of_other_models_too() -> None:
    adapter, others = lmn(), [(Stateless(seed=1), streams(8))]
    result = fit(adapter, [], streams(4, seed=1), others=others, learn_kernel=True, **FIT)
    assert result.best < result.before
    assert adapter.memory.lam != pytest.approx(5.0, abs=1e-3)


def test_a_theta_that_a_combiner_refuses_changes_nothing() -> None:
    adapter, before = lmn(), MemoryConfig()
    with pytest.raises(ConfigError, match="theta is 1"):
        apply(adapter, {"theta": 1.0, "lam": 2.0})
    assert adapter.memory == before


def test_nothing_to_fit_is_said() -> None:
    with pytest.raises(UnsupportedError, match=r"theta is fixed.*combiner=Combiner"):
        fit(Adapter(Stateless(), combiner=0.5), streams(4))


@pytest.mark.parametrize(
    "bad", [{"epochs": 0}, {"lr": 0.0}, {"held_out": 1.0}, {"truncate": 0}, {"clip": -1.0}]
)
def test_fit_options_are_checked(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        fit(lmn(), streams(4), **bad)
