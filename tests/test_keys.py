from __future__ import annotations

import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from labelmem import Adapter, Combiner
from labelmem.errors import ConfigError, InputError
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel

CPU = torch.device("cpu")


def keys_of(tokens: list[int], **options: float) -> list[torch.Tensor]:
    key = RecentTokens(**options)  # type: ignore[arg-type]
    state, out = key.initial_state(1, CPU), []
    for token in tokens:
        made, state = key(torch.tensor([token]), torch.zeros(1, 2), state)
        out.append(made[0])
    return out


def test_a_key_is_the_last_tokens_and_nothing_else() -> None:
    a, b = keys_of([1, 2, 3, 2, 3], dim=16), keys_of([9, 9, 9, 2, 3], dim=16)
    assert torch.equal(a[4], b[4])
    assert not torch.equal(a[3], b[3])
    assert float(a[2] @ a[4]) == pytest.approx(2.0, abs=1e-5)


def test_the_first_key_has_no_past() -> None:
    (first,) = keys_of([4], last=3, dim=8)
    assert float(first[:8].norm()) == pytest.approx(1.0)
    assert float(first[8:].abs().sum()) == 0


def test_older_tokens_fade() -> None:
    key = keys_of([4, 5], last=2, dim=8, fade=0.5)[1]
    assert float(key[8:].norm()) == pytest.approx(0.5)


def test_directions_depend_on_the_seed_alone() -> None:
    small, large = keys_of([3], dim=8)[0], keys_of([9000, 3], dim=8)[1]
    assert torch.equal(small[:8], large[:8])
    assert not torch.equal(small, keys_of([3], dim=8, seed=1)[0])


def direction_of(token: int, dim: int, seed: int) -> torch.Tensor:
    """As they were always made: in blocks of 4096 tokens with seeds of their own."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + token // 4096)
    row = torch.randn(4096, dim, generator=generator)[token % 4096]
    return row / row.norm()


@pytest.mark.parametrize("way", [nullcontext, plainly])
@pytest.mark.parametrize("streams", [1, 2])
def test_tokens_of_any_size_have_their_own_direction(way: Any, streams: int) -> None:
    dim, tokens = 512, [-1, 5, 4095, 4096, 200_000, 10**9, 5, 2**62]
    key = RecentTokens(last=2, dim=dim, seed=3)
    state, before = key.initial_state(streams, CPU), -1
    with way():
        for token in tokens:
            x = torch.full((streams,), token)
            made, state = key(x, torch.zeros(streams, 2), state)
            assert state.tolist() == [[token]] * streams
            for part, each in enumerate((token, before)):
                spec = direction_of(each, dim, 3) if each >= 0 else torch.zeros(dim)
                found = made[-1, part * dim : (part + 1) * dim]
                torch.testing.assert_close(found, spec, rtol=0, atol=1e-6)
            before = token


@pytest.mark.parametrize("streams", [1, 2])
def test_predicting_does_not_change_the_key(streams: int) -> None:
    key = Joined(RecentTokens(dim=8), Hidden(0.3))
    before = pickle.dumps(key)
    batch = Adapter(GRUModel(labels=9000, dim=4), key=key).streams(streams)
    for token in (3, 8999):
        batch.predict(torch.full((streams,), token))
        batch.observe([token] * streams)
    assert pickle.dumps(key) == before


def test_a_key_that_was_used_without_gradients_trains() -> None:
    key, h = RecentTokens(dim=8), torch.ones(2, 8, requires_grad=True)
    for token in (3, 10**9):
        x, state = torch.tensor([token, 4]), key.initial_state(2, CPU)
        with torch.inference_mode():
            key(x, h, state)
        (key(x, h, state)[0][:, :8] * h).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("last, pair, fade", [(1, False, 1.0), (2, True, 1.0), (3, True, 0.5)])
def test_one_stream_takes_a_short_way(
    last: int, pair: bool, fade: float, dtype: torch.dtype
) -> None:
    h = torch.randn(7, 1, 5, generator=torch.Generator().manual_seed(0), dtype=dtype)
    h[3] = 0

    def made() -> list[torch.Tensor]:
        key = Joined(RecentTokens(last, 8, fade, pair), Hidden(0.3))
        state, out = key.initial_state(1, CPU), []
        for t, token in enumerate([3, 3, 5, -1, 5000, 3, 5]):
            found, state = key(torch.tensor([token]), h[t], state)
            out += [found, state[0]]
        return out

    with plainly():
        expected = made()
    for found, spec in zip(made(), expected, strict=True):
        torch.testing.assert_close(found, spec, rtol=0, atol=1e-6)


def test_inputs_must_be_tokens() -> None:
    with pytest.raises(InputError, match="tokens"):
        RecentTokens()(torch.rand(1, 3), torch.zeros(1, 2), torch.full((1, 1), -1))
    with pytest.raises(ConfigError):
        RecentTokens(last=0)


@pytest.mark.parametrize("combiner", [0.5, Combiner(kind="stream")])
def test_a_stream_with_such_keys_is_pure_and_continues_elsewhere(
    combiner: float | Combiner, tmp_path: Path
) -> None:
    adapter = Adapter(GRUModel(labels=6, dim=8), key=RecentTokens(dim=8), combiner=combiner)
    stream, batch = adapter.stream(), adapter.streams(2)
    tokens = [6, 1, 2, 1, 2, 1, 5, 2]
    for t, token in enumerate(tokens[:-1]):
        for _ in range(2):  # the second prediction is as the first
            p = stream.predict(token)
        together = batch.predict(torch.tensor([token, 6]))
        assert torch.allclose(together[0], p.probs, atol=1e-6)
        stream.observe(tokens[t + 1])
        batch.observe(torch.tensor([tokens[t + 1], 0]), mask=[True, t % 2 == 0])
        stream.save(tmp_path / "s")
        loaded = adapter.load_stream(tmp_path / "s")
        assert torch.equal(loaded.predict(3).probs, stream.predict(3).probs)


def test_a_habit_is_learned_by_context() -> None:
    """After 1 comes 2, after 3 comes 4: a counter cannot know, such a key can."""
    model = GRUModel(labels=5, dim=4)
    adapter = Adapter(model, key=RecentTokens(last=1), combiner=0.95)
    stream = adapter.stream()
    previous = 5
    for token in [1, 2, 3, 4] * 3:
        stream.predict(previous)
        stream.observe(token)
        previous = token
    assert stream.predict(1).label == 2
    assert stream.predict(3).label == 4
