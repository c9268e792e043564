"""Labels that drift with the background, against Eq. 4 in plain tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from labelmem import Adapter, Combiner, MemoryConfig, Stream
from labelmem.fast import plainly, uncompiled
from labelmem.label_combiner.drift import DriftState, DriftStep, settled

pytest.importorskip("numba")

from labelmem.compiled.label_drift import ROWS

LABELS, DIM, STEPS = 700, 6, 3 * ROWS + 5


class Peaked(nn.Module):
    """Beliefs as a trained model has them: a few likely labels, and hundreds that hardly are."""

    def __init__(self, low: float) -> None:
        super().__init__()
        self.head = nn.Linear(DIM, LABELS)
        with torch.no_grad():
            self.head.weight.mul_(3)
            self.head.bias[20:] -= low

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(x)
        return logits


def adapter(size: float = 0.4, hidden: int = 5, low: float = 9.0) -> Adapter:
    """With a combiner of random weights; with ``low`` 0 all labels are likely enough to be far."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        combiner = Combiner(kind="label", hidden=hidden)
        made = Adapter(Peaked(low).eval(), memory=MemoryConfig(margin=50.0), combiner=combiner)
        with torch.no_grad():
            for weight in combiner.parameters():
                weight.copy_(size * torch.randn(weight.shape))
    return made


def recorded(steps: int = STEPS) -> tuple[Tensor, list[int]]:
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(30, (steps,), generator=generator).tolist()
    return torch.randn(steps, DIM, generator=generator), y


def drift_of(stream: Stream) -> DriftState:
    state = stream._state.combiner
    assert isinstance(state, DriftState)
    return state


def assert_alike(stream: Stream, other: Stream, atol: float = 2e-6) -> None:
    mine, theirs = (settled(each._state.combiner).tensors() for each in (stream, other))
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=atol, msg=name)


@pytest.mark.parametrize("low", [9.0, 0.0], ids=["near", "far"])
@pytest.mark.parametrize("size", [0.02, 0.4, 1.0])
@pytest.mark.parametrize("hidden", [1, 5, 16])
def test_it_is_eq_4_whether_labels_are_near_or_far(hidden: int, size: float, low: float) -> None:
    stream, other = (adapter(size, hidden, low).stream() for _ in range(2))
    shares = []
    for x, y in zip(*recorded(), strict=True):
        seen = stream.predict(x)
        with plainly():
            right = other.predict(x)
        torch.testing.assert_close(seen.probs, right.probs, rtol=0, atol=3e-6)
        torch.testing.assert_close(seen._step.theta, right._step.theta, rtol=0, atol=3e-6)
        stream.observe(y)
        with plainly():
            other.observe(y)
        shares.append(len(drift_of(stream).far) / LABELS)
    assert_alike(stream, other, 1e-5)
    if low:
        assert 0 < max(shares) < 0.5  # most have really drifted
    elif size > 0.1:
        assert max(shares) > 0.9


def test_states_are_written_down_now_and_then() -> None:
    stream = adapter().stream()
    counts, bases = [], set()
    for x, y in zip(*recorded(), strict=True):
        stream.predict(x)
        stream.observe(y)
        counts.append(drift_of(stream).count)
        bases.add(id(drift_of(stream).base))
    assert max(counts) == ROWS and counts.count(1) >= 2 and len(bases) > 1


def test_labels_that_come_back_are_near_again() -> None:
    made, most = adapter(), 0
    stream = made.stream()
    for x, y in zip(*recorded(), strict=True):
        stream.predict(x)
        stream.observe(y)
        most = max(most, len(drift_of(stream).far))
    made.combiner.weight_scores.data.zero_()  # type: ignore[union-attr, operator]
    for x in recorded(40 * ROWS)[0]:  # nothing tells labels apart any more
        stream.predict(x)
        stream.observe(0)
    # Only those in memory, 30 at the most, have scores and stay apart for that.
    assert len(drift_of(stream).far) <= 30 < most


@pytest.mark.parametrize("before", [0.0, 0.02])
def test_the_combiner_may_be_trained_meanwhile(before: float) -> None:
    made, other = adapter(before), adapter(before)
    stream, right = made.stream(), other.stream()
    xs, ys = recorded()
    for t, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if t == ROWS // 2:  # far larger weights: what was near is not any more
            for one in (made, other):
                one.combiner.load_state_dict(adapter(1.0).combiner.state_dict())  # type: ignore
        seen = stream.predict(x)
        with plainly():
            theirs = right.predict(x)
            right.observe(y)
        torch.testing.assert_close(seen.probs, theirs.probs, rtol=0, atol=3e-6)
        stream.observe(y)
        if t == ROWS // 2:  # states were written down before the step
            assert drift_of(stream).count == 2
    assert_alike(stream, right, 1e-5)


def test_a_step_that_someone_looks_at_has_all_states() -> None:
    stream, other = (adapter().stream() for _ in range(2))
    for x, y in zip(*recorded(ROWS + 3), strict=True):
        mine = stream.predict(x)._step.combined
        with plainly():
            theirs = other.predict(x)._step.combined
        assert isinstance(mine, DriftStep) and not isinstance(theirs, DriftStep)
        torch.testing.assert_close(mine.mu, theirs.mu, rtol=0, atol=2e-6)
        stream.observe(y)
        with plainly():
            other.observe(y)


@pytest.mark.parametrize("way", [plainly, uncompiled])
def test_other_ways_may_take_a_step_in_between(way: type) -> None:
    stream, other = (adapter().stream() for _ in range(2))
    for t, (x, y) in enumerate(zip(*recorded(), strict=True)):
        if t % 5 == 3:
            with way():
                seen = stream.predict(x)
        else:
            seen = stream.predict(x)
        if t % 7 == 3:
            with way():
                stream.observe(y)
        else:
            stream.observe(y)
        with plainly():
            right = other.predict(x)
            other.observe(y)
        torch.testing.assert_close(seen.probs, right.probs, rtol=0, atol=3e-6)
    assert_alike(stream, other)


def test_labels_may_join() -> None:
    stream, other = (adapter().stream() for _ in range(2))
    for t, (x, y) in enumerate(zip(*recorded(), strict=True)):
        seen = stream.predict(x)
        with plainly():
            right = other.predict(x)
        torch.testing.assert_close(seen.probs, right.probs, rtol=0, atol=3e-6)
        label = f"new {t}" if t % 4 == 2 else y
        stream.observe(label)
        with plainly():
            other.observe(label)
    assert drift_of(stream).base.shape[1] > LABELS
    assert_alike(stream, other)


def test_labels_may_come_late() -> None:
    stream, other = (adapter().stream() for _ in range(2))
    xs, ys = recorded()
    for t in range(0, STEPS - 2, 3):
        mine = [stream.predict(x) for x in xs[t : t + 3]]
        with plainly():
            theirs = [other.predict(x) for x in xs[t : t + 3]]
        for i in (2, 0, 1):
            label = f"new {t}" if i == 2 and t % 2 else ys[t + i]
            stream.observe(label, mine[i])
            with plainly():
                other.observe(label, theirs[i])
    assert_alike(stream, other)


def test_a_saved_stream_goes_on(tmp_path: Path) -> None:
    made = adapter()
    stream = made.stream()
    xs, ys = recorded()
    for t, (x, y) in enumerate(zip(xs, ys, strict=True)):
        stream.predict(x)
        stream.observe(y)
        if t == ROWS + 2:
            stream.save(tmp_path / "stream")
    again = made.load_stream(tmp_path / "stream")
    for x, y in zip(xs[ROWS + 3 :], ys[ROWS + 3 :], strict=True):
        again.predict(x)
        again.observe(y)
    assert_alike(again, stream)


def test_fewer_labels_may_be_asked_for_than_have_states() -> None:
    made = adapter()
    batch, other = made.streams(1), made.streams(1)
    xs, ys = recorded(6)
    wider = settled(batch._now.combiner).with_slots(1 + LABELS + 9)
    batch._now.combiner = other._now.combiner = wider
    for x, y in zip(xs, ys, strict=True):
        seen = batch.predict(x[None])
        with plainly():
            right = other.predict(x[None])
            other.observe_ids(torch.tensor([y]))
        torch.testing.assert_close(seen, right, rtol=0, atol=3e-6)
        batch.observe_ids(torch.tensor([y]))
    mine, theirs = (settled(each._now.combiner) for each in (batch, other))
    torch.testing.assert_close(mine.mu, theirs.mu, rtol=0, atol=2e-6)
    assert mine.mu.shape[1] == 1 + LABELS + 9
