"""The combiner of Eq. 4 against the oracle: dense, sparse, late labels, in batches with masks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from slow import assert_follows_the_oracle, oracle_combiner
from torch import Tensor
from toys import (
    Stateless,
    nbytes,
    random_combiner,
    random_stream,
    run,
)

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.errors import ConfigError, ModelError
from labelmem.label_combiner import LabelState

DIM = 3


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scores(*shape: int, seed: int) -> Tensor:
    return torch.softmax(2 * random(*shape, seed=seed), dim=-1)


def double(**options: Any) -> Combiner:
    return random_combiner(DIM, **options).double()


# ---------------------------------------------------------------- steps


def test_dense_steps_are_the_oracle_with_labels_that_join() -> None:
    combiner = double()
    slow = oracle_combiner(combiner)
    state = combiner.initial_state(1, 2)
    for t, width in enumerate([2, 2, 3, 3, 5, 5, 5]):
        h = random(1, DIM, seed=t)
        step = combiner.step(state, h, width)
        expected = slow.theta(h[0].tolist(), range(width))
        assert step.theta[0].tolist() == pytest.approx(list(expected.values()), abs=1e-12)
        r, s = scores(1, width, seed=50 + t), scores(1, width, seed=90 + t)
        y = t % width
        missed = torch.stack([r.argmax(1) != y, s.argmax(1) != y], dim=1)
        state = combiner.commit(state, step, r, s, missed)
        both = [dict(enumerate(x[0].tolist())) for x in (r, s)]
        slow.commit(h[0].tolist(), range(width), y, *both)
    assert state.mu[0, 0].tolist() == pytest.approx(slow.background(), abs=1e-12)


def test_forward_is_pure_and_commit_makes_a_new_state() -> None:
    for threshold in (0.0, 0.1):
        combiner = double(active_threshold=threshold)
        state = combiner.initial_state(2, 3)
        kept = {name: tensor.clone() for name, tensor in state.tensors().items()}
        step = combiner.step(state, random(2, DIM), 3)
        missed = torch.tensor([[True, False], [False, True]])
        combiner.commit(state, step, scores(2, 3, seed=1), scores(2, 3, seed=2), missed)
        for name, tensor in state.tensors().items():
            assert torch.equal(tensor, kept[name])


@pytest.mark.parametrize("threshold", [0.0, 0.15])
def test_masked_batches_are_each_stream_alone(threshold: float) -> None:
    combiner = double(active_threshold=threshold)
    together, alone = combiner.initial_state(3, 4), [combiner.initial_state(1, 4) for _ in range(3)]
    for t in range(8):
        width = 4 + t // 3
        h, r, s = random(3, DIM, seed=t), scores(3, width, seed=t), scores(3, width, seed=t + 20)
        missed = random(3, 2, seed=t + 40) > 0
        mask = torch.tensor([True, t % 2 == 0, t < 3])
        step = combiner.step(together, h, width)
        before, together = together, combiner.commit(together, step, r, s, missed, mask)
        for n in range(3):
            one = combiner.step(alone[n], h[n : n + 1], width)
            torch.testing.assert_close(step.theta[n], one.theta[0], rtol=0, atol=1e-12)
            if mask[n]:
                row = slice(n, n + 1)
                alone[n] = combiner.commit(alone[n], one, r[row], s[row], missed[row])
            else:
                assert_same_row(before, together, n)


def assert_same_row(before: LabelState, after: LabelState, n: int) -> None:
    """Stream n is as it was; slots that were added for others hold its background state."""
    slots = before.mu.shape[1]
    for name, tensor in before.tensors().items():
        now = after.tensors()[name][n]
        assert torch.equal(now if name == "missed" else now[:slots], tensor[n]), name
    assert bool((after.mu[n, slots:] == after.mu[n, 0]).all())


# ---------------------------------------------------------------- inside a stream


def test_an_untrained_combiner_is_lmn_fixed() -> None:
    x, ys = random_stream(3, 60, range(4), ["emu"])
    for threshold in (0.0, 1e-3):
        learned = Combiner(kind="label", theta=0.3, active_threshold=threshold)
        seen = run(Adapter(Stateless(), combiner=learned).stream(), x, ys)
        expected = run(Adapter(Stateless(), combiner=0.3).stream(), x, ys)
        for a, b in zip(seen, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_a_tiny_threshold_is_as_good_as_dense() -> None:
    # Every model label and every label in memory exceeds it at once, so nothing is lost.
    x, ys = random_stream(4, 120, range(4), ["emu", "owl"])
    memory = MemoryConfig(cells_per_label=2, capacity=5)
    dense = Adapter(Stateless(), memory=memory, combiner=random_combiner())
    sparse = Adapter(Stateless(), memory=memory, combiner=random_combiner(active_threshold=1e-9))
    for a, b in zip(run(dense.stream(), x, ys), run(sparse.stream(), x, ys), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("threshold", [1e-9, 0.05, 0.2, 0.6])
def test_sparse_is_the_documented_approximation(threshold: float) -> None:
    combiner = random_combiner(active_threshold=threshold)
    adapter = Adapter(Stateless().double(), memory=MemoryConfig(capacity=4), combiner=combiner)
    x, ys = random_stream(5, 80, range(4), ["emu", "owl"])
    stream, oracle = assert_follows_the_oracle(adapter, x.double(), ys, 1e-9)
    ids = stream.tensors()["combiner.ids"]
    active = {stream.space.find(label) for label in oracle.lmn.combiner.active}
    assert {int(i) for i in ids[0] if i >= 0} == active


def test_a_label_that_joins_late_has_the_background_state() -> None:
    # New labels start alike, and like a known label that neither model nor memory ever named.
    for threshold in (0.0, 0.3):
        combiner = double(active_threshold=threshold)
        state = combiner.initial_state(1, 3)
        r = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
        for t in range(4):
            step = combiner.step(state, random(1, DIM, seed=t), 3)
            state = combiner.commit(state, step, r, r, torch.tensor([[True, False]]))
        theta = combiner.step(state, random(1, DIM, seed=9), 6).theta[0]
        assert torch.equal(theta[2:], theta[2].expand(4))
        assert abs(theta[0] - theta[2]) > 1e-3


def test_the_state_over_many_labels_is_small_with_a_threshold() -> None:
    labels = 40_000
    combiner = random_combiner(dim=8, hidden=16, active_threshold=0.01)
    model = Stateless(labels=labels, dim=8)
    with torch.no_grad():
        model.head.weight.mul_(0.5)
    stream = Adapter(model, combiner=combiner).stream()
    x, ys = random_stream(6, 50, range(0, labels, 800))
    run(stream, x, ys)
    assert stream.tensors()["combiner.ids"].shape[1] < 400
    assert nbytes(stream) < 200_000


# ---------------------------------------------------------------- weights and options


def test_weights_come_from_the_seed_alone() -> None:
    torch.manual_seed(1)
    a = Combiner(kind="label", seed=3).build(DIM)
    torch.manual_seed(2)
    b, c = Combiner(kind="label", seed=3).build(DIM), Combiner(kind="label", seed=4).build(DIM)
    assert torch.equal(a.weight_h, b.weight_h) and not torch.equal(a.weight_h, c.weight_h)


def test_building_again_keeps_the_weights_and_refuses_another_dimension() -> None:
    combiner = random_combiner(DIM)
    before = combiner.weight_h.clone()
    assert torch.equal(combiner.build(DIM).weight_h, before)
    with pytest.raises(ModelError, match=r"length 3.*has 4"):
        combiner.build(4)


def test_restart_makes_lmn_fixed_again() -> None:
    combiner = random_combiner(DIM)
    combiner.restart(0.2)
    theta = combiner.step(combiner.initial_state(1, 3), torch.ones(1, DIM), 3).theta
    assert theta.tolist()[0] == pytest.approx([0.2] * 3)
    with pytest.raises(ConfigError, match=r"theta is 1"):
        combiner.restart(1)


@pytest.mark.parametrize(
    "options",
    [{"hidden": 0}, {"theta": 0.0}, {"theta": 1.0}, {"active_threshold": -0.1}, {"kind": "other"}],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    [(name, value)] = options.items()
    with pytest.raises(ConfigError, match=f"{name} is {value!r}"):
        Combiner(**{"kind": "label", **options})
