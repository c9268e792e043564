"""One stream by kernels from end to end, against the specification."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from toys import assert_same, filled, snapshot, unchanged

from labelmem import Adapter, Combiner, MemoryConfig, StreamBatch
from labelmem.errors import ClosedError, InputError
from labelmem.evaluation import evaluate
from labelmem.fast import plainly, uncompiled
from labelmem.keys import Hidden, Joined, Key, RecentTokens
from labelmem.models import GRUModel, HistoryModel
from labelmem.one_stream import OneStreamBatch, one_stream

pytest.importorskip("numba")

LABELS, START, STEPS = 9, 9, 40


def both(**options: Any) -> Key:
    return Joined(RecentTokens(dim=6, **options), Hidden(0.3))


def made(
    key: Key | None = None,
    memory: MemoryConfig | None = None,
    combiner: dict[str, Any] | None = None,
    partition: bool = True,
    **model: Any,
) -> Adapter:
    network = filled(HistoryModel(LABELS, dim=5, **model), seed=1, scale=0.5)
    options: dict[str, Any] = {"hidden": 4, "rescorer": 6, **(combiner or {})}
    adapter = Adapter(
        network,
        memory=memory or MemoryConfig(margin=float("inf")),
        combiner=Combiner(kind="stream", **options),
        key=both(pair=True) if key is None else key,
        partition=partition,
    )
    filled(adapter.combiner, seed=2, scale=0.4)
    return adapter


def recorded(seed: int = 0, labels: int = LABELS + 3) -> tuple[Tensor, Tensor]:
    """A stream with habits, and with labels that the model does not know."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, labels, (STEPS,), generator=generator)
    y[::3] = 2
    # New labels have the next free number when they come; none is fed to the model.
    numbers: dict[int, int] = {}
    for t, label in enumerate(y.tolist()):
        if label >= LABELS:
            y[t] = numbers.setdefault(label, LABELS + len(numbers))
    x = torch.cat([torch.tensor([START]), torch.where(y[:-1] < LABELS, y[:-1], START)])
    return x, y


def compared(adapter: Adapter, x: Tensor, y: Tensor) -> None:
    """The same predictions, and the same state at the end."""
    short, plain = one_stream(adapter), adapter.streams(1)
    assert isinstance(short, OneStreamBatch)
    quick = 0
    for t in range(len(y)):
        found = short.predict(x[t : t + 1])
        quick += short._open is not None
        with plainly():
            expected = plain.predict(x[t : t + 1])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
        assert short.last is not None and plain.last is not None
        for name in ("theta", "model_probs", "memory_probs"):
            mine, theirs = getattr(short.last, name), getattr(plain.last, name)
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)
        short.observe_ids(y[t : t + 1])
        with plainly():
            plain.observe_ids(y[t : t + 1])
    assert quick == len(y) - 1  # before the first write nobody knows how long a key is
    ours, spec = (adapter.tensors(batch._state) for batch in (short, plain))
    assert ours.keys() == spec.keys()
    for name, expected in spec.items():
        torch.testing.assert_close(ours[name], expected, rtol=1e-5, atol=1e-5, msg=name)
    assert short.labels(0) == plain.labels(0)


CASES: dict[str, dict[str, Any]] = {
    "as in the tables": {},
    "all labels mixed": {"partition": False},
    "theta only": {"combiner": {"correct": False}},
    "sees h": {"combiner": {"sees_h": True}},
    "prior": {"prior": 1.5, "norm": 1.0, "decays": (0.0, 0.9)},
    "gate": {"memory": MemoryConfig(margin=1.0, lam=3.0, delta=0.5)},
    "few cells": {"memory": MemoryConfig(margin=float("inf"), capacity=4)},
    "three tokens": {"key": both(last=3, fade=0.5)},
    "one token": {"key": Joined(RecentTokens(last=1, dim=6))},
    "tokens alone": {"key": RecentTokens(dim=6, pair=True)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_streams(case: str, seed: int) -> None:
    compared(made(**CASES[case]), *recorded(seed))


def test_short_and_plain_steps_in_turns() -> None:
    adapter, (x, y) = made(), recorded()
    mixed, plain = one_stream(adapter), adapter.streams(1)
    for t in range(STEPS):
        with plainly() if t % 3 == 1 else uncompiled() if t % 7 == 3 else torch.no_grad():
            found = mixed.predict(x[t : t + 1])
        with plainly():
            expected = plain.predict(x[t : t + 1])
            plain.observe_ids(y[t : t + 1])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
        mixed.observe_ids(y[t : t + 1])


def run(batch: StreamBatch, x: Tensor, y: Tensor) -> StreamBatch:
    for t in range(len(y)):
        batch.predict(x[t : t + 1])
        batch.observe_ids(y[t : t + 1])
    return batch


def test_predicting_is_pure_and_what_was_predicted_stays() -> None:
    batch = run(one_stream(made()), *recorded())
    first = batch.predict(torch.tensor([2]))
    kept = first.clone()
    with unchanged(batch):
        batch.predict(torch.tensor([5]))
        assert torch.equal(first, batch.predict(torch.tensor([2])))
    batch.observe_ids(torch.tensor([5]))
    assert torch.equal(first, kept)


def test_a_masked_label_is_not_learned() -> None:
    batch = run(one_stream(made()), *recorded())
    with unchanged(batch):
        batch.predict(torch.tensor([2]))
        batch.observe([5], mask=[False])
    assert batch.last is None


def test_labels_by_name() -> None:
    adapter, (x, y) = made(), recorded(labels=LABELS)
    ids, names = run(one_stream(adapter), x, y), one_stream(adapter)
    for t in range(STEPS):
        names.predict(x[t : t + 1])
        names.observe([int(y[t])])
    assert_same(snapshot(ids), snapshot(names))
    names.predict(torch.tensor([2]))
    names.observe(["new"])
    assert names.labels(0)[-1] == "new"


def test_a_reset_stream_is_as_new() -> None:
    adapter, (x, y) = made(), recorded()
    batch = run(one_stream(adapter), x, y)
    batch.predict(x[:1])
    batch.reset()
    assert batch.last is None
    assert_same(snapshot(run(batch, x, y)), snapshot(run(one_stream(adapter), x, y)))


def test_weights_may_move_and_change() -> None:
    adapter, (x, y) = made(), recorded()
    batch = run(one_stream(adapter), x, y)
    model, combiner = adapter.backbone.model, adapter.combiner
    assert isinstance(combiner, Combiner)
    changes = [
        lambda: model.embedding.weight.mul_(0.5),
        lambda: setattr(model, "mix", torch.nn.Parameter(0.7 * model.mix)),
        lambda: model.double().float(),
        lambda: combiner.theta_inner.neg_(),
        lambda: combiner.load_state_dict(
            {k: 0.9 * w for k, w in combiner.state_dict().items()}, assign=True
        ),
        lambda: model.train(),
    ]
    for change in changes:
        with torch.no_grad():
            change()
        found = batch.predict(torch.tensor([3]))
        with plainly():
            torch.testing.assert_close(found, batch.predict(torch.tensor([3])), rtol=0, atol=1e-5)


def test_hooks_see_the_model_run() -> None:
    adapter = made()
    batch = run(one_stream(adapter), *recorded())
    seen: list[int] = []
    hook = adapter.backbone.model.head.register_forward_hook(lambda *_: seen.append(1))
    batch.predict(torch.tensor([3]))
    hook.remove()
    batch.predict(torch.tensor([3]))
    assert seen == [1]


def test_what_is_wrong_is_refused_as_ever() -> None:
    adapter = made()
    batch = run(one_stream(adapter), *recorded())
    with unchanged(batch):
        for bad in (torch.tensor([-1]), torch.tensor([START + 1]), torch.tensor([1, 2]), "text"):
            with pytest.raises(InputError):
                batch.predict(bad)
        batch.predict(torch.tensor([3]))
        with pytest.raises(InputError):
            batch.observe_ids(torch.tensor([-1]))
    key, adapter.key = adapter.key, Joined(RecentTokens(dim=7), Hidden(0.3))  # of another length
    with unchanged(batch), pytest.raises(InputError):
        batch.predict(torch.tensor([3]))
    adapter.key = key
    adapter.close()
    with pytest.raises(ClosedError):
        batch.predict(torch.tensor([3]))


def test_other_methods_step_as_they_do() -> None:
    class Other(Adapter):
        def encode(self, *given: Any) -> Any:
            return super().encode(*given)

    class OtherModel(HistoryModel):
        def _h(self, *given: Any) -> Tensor:
            return -super()._h(*given)

    class OtherKey(RecentTokens):
        def __call__(self, *given: Any) -> Any:
            return super().__call__(*given)

    model = HistoryModel(LABELS, dim=5)
    stream = Combiner(kind="stream")
    others = [
        Adapter(GRUModel(LABELS, dim=5), combiner=stream, key=RecentTokens(dim=6)),
        Adapter(HistoryModel(LABELS, dim=5, recurrent=3), combiner=Combiner(), key=both()),
        Adapter(model, combiner=0.5, key=both()),
        Adapter(model, combiner=Combiner()),
        Other(model, combiner=Combiner(), key=both()),
        Adapter(OtherModel(LABELS, dim=5), combiner=Combiner(), key=both()),
        Adapter(model, combiner=Combiner(), key=OtherKey(dim=6)),
    ]
    assert [type(one_stream(other)) for other in others] == [StreamBatch] * 7
    with uncompiled():
        assert type(one_stream(made())) is StreamBatch


def test_evaluation_of_one_stream_at_a_time() -> None:
    adapter = made()
    sequences = [recorded(seed) for seed in range(3)]
    single, together = (evaluate(adapter, sequences, n).result() for n in (1, 3))
    assert single.metrics == pytest.approx(together.metrics, rel=1e-5, abs=1e-5)
