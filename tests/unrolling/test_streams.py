"""All steps at once, against the replay step by step."""

from __future__ import annotations

import math

import pytest
import torch
from toys import Recurrent, random_combiner, random_stream

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.combiner import StreamCombiner
from labelmem.evaluation import evaluate
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel
from labelmem.online import Recorded
from labelmem.recording import lockstep_batches
from labelmem.replay import record, replay
from labelmem.unrolling.streams import can_unroll, losses, unrolled

ALWAYS = MemoryConfig(margin=math.inf, lam=2.0)


def token_streams(count: int, labels: int = 6, seed: int = 0) -> list[Recorded]:
    g = torch.Generator().manual_seed(seed)
    streams: list[Recorded] = []
    for _ in range(count):
        y = torch.randint(0, labels, (int(torch.randint(3, 14, (1,), generator=g)),), generator=g)
        streams.append((torch.cat([torch.tensor([labels]), y[:-1]]), y))
    return streams


def tokens_adapter(partition: bool, capacity: int | None = None, sees_h: bool = False) -> Adapter:
    torch.manual_seed(0)
    combiner = random_combiner(4, kind="stream", rescorer=5, sees_h=sees_h, parts=4)
    key = Joined(RecentTokens(dim=8, pair=True), Hidden(0.3))
    memory = MemoryConfig(margin=math.inf, capacity=capacity)
    model = GRUModel(labels=6, dim=4)
    return Adapter(model, memory=memory, key=key, combiner=combiner, partition=partition)


def both(adapter: Adapter, streams: list[Recorded]) -> tuple[torch.Tensor, torch.Tensor]:
    batches = lockstep_batches(streams, adapter.known, 5, adapter.device, adapter.dtype)
    slow, fast = [], []
    assert isinstance(adapter.combiner, StreamCombiner)
    for batch in batches:
        features = record(adapter, batch)
        with torch.no_grad():
            slow.append(torch.stack([s.loss for s in replay(adapter, features)], 1)[batch.mask])
            for piece in unrolled(adapter, features, 3, 1000, 1):
                fast += [losses(adapter.combiner, piece)[piece.mask]]
    return torch.cat(slow), torch.cat(fast)


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("capacity", [None, 3])
@pytest.mark.parametrize("sees_h", [False, True])
def test_every_loss_is_that_of_the_replay(
    partition: bool, capacity: int | None, sees_h: bool
) -> None:
    adapter = tokens_adapter(partition, capacity, sees_h)
    slow, fast = both(adapter, token_streams(12))
    assert torch.allclose(slow, fast, atol=1e-5)
    assert float(slow.std()) > 0.1


def test_labels_beyond_the_model_and_a_standardised_combiner() -> None:
    combiner = random_combiner(kind="stream", rescorer=5)
    adapter = Adapter(Recurrent(), memory=ALWAYS, combiner=combiner)
    assert isinstance(combiner, StreamCombiner)
    with torch.no_grad():
        combiner.features_mean.normal_()
        combiner.signals_spread.uniform_(0.5, 2)
    slow, fast = both(adapter, [random_stream(i, 9 + i, range(4), ["emu"]) for i in range(7)])
    assert torch.allclose(slow, fast, atol=1e-5)


def test_only_what_follows_from_one_reading_is_unrolled() -> None:
    several = MemoryConfig(margin=math.inf, cells_per_label=2)
    assert can_unroll(Combiner(kind="stream"), ALWAYS)
    assert not can_unroll(Combiner(kind="stream"), MemoryConfig())
    assert not can_unroll(Combiner(kind="stream"), several)
    assert not can_unroll(Combiner(kind="label"), ALWAYS)
    assert not can_unroll(0.5, ALWAYS)


def test_windows_of_a_long_stream_see_its_whole_memory() -> None:
    adapter = tokens_adapter(partition=True)
    (batch,) = lockstep_batches(token_streams(1)[:1], adapter.known, 1, adapter.device, torch.float)
    length = batch.y.shape[1]
    features = record(adapter, batch)
    (whole,) = unrolled(adapter, features, 5, 1000, 1)
    pieces = list(unrolled(adapter, features, 5, 3, 2))
    assert [p.mask.shape[1] for p in pieces] == [3, min(3, length - 3 * (length // 6))]
    assert torch.equal(pieces[0].slot, whole.slot[:, :3])
    start = 3 * int(-(-length // 3) / 2)
    seen = pieces[1].look.signals
    assert torch.allclose(seen, whole.look.signals[:, start : start + seen.shape[1]])


def test_training_starts_from_lmn_fixed_and_ends_where_its_losses_say() -> None:
    adapter, streams = tokens_adapter(partition=True), token_streams(24)
    adapter.combiner = Combiner(kind="stream", theta=0.3, rescorer=5, dropout=0.1)
    fixed = adapter.variant(adapter.memory, 0.3)
    before = evaluate(fixed, streams[:6]).metrics.running
    result = adapter.fit(streams[6:], validation=streams[:6], epochs=3, lr=0.01, batch_size=6)
    assert result.before == pytest.approx(before, abs=1e-5)
    assert result.best < result.before
    assert evaluate(adapter, streams[:6]).metrics.running == pytest.approx(result.best, abs=1e-5)


def test_streams_of_other_models_are_read_through_those() -> None:
    adapter, other = tokens_adapter(partition=True), tokens_adapter(partition=True)
    streams = token_streams(24)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in other.backbone.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=draw))
    alike = {"validation": streams[:6], "epochs": 2, "batch_size": 20}
    own = adapter.fit([], others=[(adapter.backbone.model, streams[6:])], **alike)
    again = tokens_adapter(partition=True).fit(streams[6:], **alike)
    assert own.epochs == pytest.approx(again.epochs, abs=1e-6)
    crossed = tokens_adapter(partition=True)
    result = crossed.fit([], others=[(other.backbone.model, streams[6:])], **alike)
    assert result.epochs != pytest.approx(own.epochs, abs=1e-6)


def test_standardising_gives_mean_zero_and_spread_one() -> None:
    adapter = tokens_adapter(partition=True)
    combiner = adapter.combiner
    assert isinstance(combiner, StreamCombiner)
    batches = lockstep_batches(token_streams(20), adapter.known, 7, adapter.device, torch.float)
    pieces = [p for b in batches for p in unrolled(adapter, record(adapter, b), 4, 1000, 1)]
    combiner.standardise([(p.look, p.mask) for p in pieces])
    seen = torch.cat([combiner.scaled(p.look).signals[p.mask] for p in pieces])
    spread = seen.std(0, correction=0)
    assert torch.allclose(seen.mean(0), torch.zeros(seen.shape[1]), atol=1e-4)
    assert bool(((spread - 1).abs() < 1e-3).logical_or(spread < 1).all())
