"""The label combiner for one stream on a CPU against Eq. 4 in plain tensors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from labelmem import Adapter, Combiner, MemoryConfig, Stream
from labelmem.fast import plainly

LABELS, DIM, STEPS = 300, 6, 40


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
    """With a combiner of random weights; with ``low`` 0 all labels are likely, so none is near."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        combiner = Combiner(kind="label", hidden=hidden)
        made = Adapter(Peaked(low).eval(), memory=MemoryConfig(margin=50.0), combiner=combiner)
        with torch.no_grad():
            for weight in combiner.parameters():
                weight.copy_(size * torch.randn(weight.shape))
    return made


def recorded(steps: int = STEPS) -> list[tuple[Tensor, int]]:
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(30, (steps,), generator=generator).tolist()
    return list(zip(torch.randn(steps, DIM, generator=generator), y, strict=True))


def assert_same_state(stream: Stream, other: Stream, atol: float = 3e-6) -> None:
    mine, theirs = stream.tensors(), other.tensors()
    assert mine.keys() == theirs.keys()
    for name in (name for name in mine if name.startswith("combiner.")):
        torch.testing.assert_close(mine[name], theirs[name], rtol=0, atol=atol, msg=name)


@pytest.mark.parametrize("low", [9.0, 0.0], ids=["near", "far"])
@pytest.mark.parametrize("size", [0.02, 0.4, 1.0])
@pytest.mark.parametrize("hidden", [1, 5, 16])
def test_steps_are_those_of_eq_4(hidden: int, size: float, low: float) -> None:
    stream, other = (adapter(size, hidden, low).stream() for _ in range(2))
    for t, (x, y) in enumerate(recorded()):
        label = f"new {t}" if t % 9 == 5 else y
        mine = stream.predict(x)
        stream.observe(label)
        with plainly():
            right = other.predict(x)
            other.observe(label)
        torch.testing.assert_close(mine.probs, right.probs, rtol=0, atol=3e-6)
        torch.testing.assert_close(mine.theta, right.theta, rtol=0, atol=3e-6)
    assert_same_state(stream, other, 3e-5)


def test_plain_steps_may_come_in_between() -> None:
    stream, other = (adapter().stream() for _ in range(2))
    for t, (x, y) in enumerate(recorded()):
        if t % 5 == 3:
            with plainly():
                mine = stream.predict(x)
        else:
            mine = stream.predict(x)
        if t % 7 == 3:
            with plainly():
                stream.observe(y)
        else:
            stream.observe(y)
        with plainly():
            right = other.predict(x)
            other.observe(y)
        torch.testing.assert_close(mine.probs, right.probs, rtol=0, atol=3e-6)
    assert_same_state(stream, other)


def test_the_combiner_may_be_trained_meanwhile() -> None:
    made, other = adapter(0.02), adapter(0.02)
    stream, right = made.stream(), other.stream()
    for t, (x, y) in enumerate(recorded()):
        if t == STEPS // 2:
            for one in (made, other):
                one.combiner.load_state_dict(adapter(1.0).combiner.state_dict())  # type: ignore
        mine = stream.predict(x)
        stream.observe(y)
        with plainly():
            theirs = right.predict(x)
            right.observe(y)
        torch.testing.assert_close(mine.probs, theirs.probs, rtol=0, atol=3e-6)
    assert_same_state(stream, right, 1e-5)


def test_labels_may_come_late() -> None:
    stream, other = (adapter().stream() for _ in range(2))
    steps = recorded()
    for t in range(0, STEPS - 2, 3):
        xs, ys = zip(*steps[t : t + 3], strict=True)
        mine = [stream.predict(x) for x in xs]
        with plainly():
            theirs = [other.predict(x) for x in xs]
        for i in (2, 0, 1):
            label = f"new {t}" if i == 2 and t % 2 else ys[i]
            stream.observe(label, mine[i])
            with plainly():
                other.observe(label, theirs[i])
    assert_same_state(stream, other)


def test_fewer_labels_may_be_asked_for_than_have_states() -> None:
    method, slots = adapter(), 1 + LABELS + 9
    states = [method.initial_state(1) for _ in range(2)]
    for state in states:
        state.combiner = state.combiner.with_slots(slots)
    for x, y in recorded(6):
        mine = method.advance(states[0], x[None], LABELS)
        method.commit(states[0], mine, torch.tensor([y]), None)
        with plainly():
            right = method.advance(states[1], x[None], LABELS)
            method.commit(states[1], right, torch.tensor([y]), None)
        torch.testing.assert_close(mine.probs, right.probs, rtol=0, atol=3e-6)
    mu, right_mu = (state.combiner.mu for state in states)
    assert mu.shape[1] == slots
    torch.testing.assert_close(mu, right_mu, rtol=0, atol=2e-6)
