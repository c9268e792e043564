"""The combiner with one state per stream, against a loop over labels in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import Stateless, cells_in, make_adapter, random_combiner, random_stream, run

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.combining import View, gru
from labelmem.errors import ConfigError
from labelmem.stream_combiner import StreamCombiner
from labelmem.stream_look import GROUPS, blind_columns


def test_untrained_it_is_lmn_fixed() -> None:
    x, ys = random_stream(1, 60, range(4), ["emu", "owl"])
    learned = Adapter(Stateless(), combiner=Combiner(kind="stream", theta=0.3))
    fixed = Adapter(Stateless(), combiner=0.3)
    for a, b in zip(run(learned.stream(), x, ys), run(fixed.stream(), x, ys), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_theta_is_one_number_for_all_labels_and_moves() -> None:
    stream = make_adapter("stream").stream()
    x, ys = random_stream(2, 20, range(4), ["emu"])
    thetas = []
    for t, y in enumerate(ys):
        p = stream.predict(x[t])
        assert p.theta is not None and len(p.theta) == len(p.labels)
        assert float(p.theta.max() - p.theta.min()) == 0
        thetas.append(float(p.theta[0]))
        stream.observe(y)
    assert len({round(theta, 4) for theta in thetas}) > 10


def log(p: float) -> float:
    return max(math.log(max(p, 1e-30)), -15.0)


def entropy(ps: Iterable[float]) -> float:
    return -sum(p * log(p) for p in ps)


class SlowLook:
    """What the docstring names, label by label and in plain Python, from the raw cells."""

    def __init__(self, stream: Any, x: Tensor) -> None:
        adapter = stream.method
        state = adapter.restore(stream.tensors(), 1)
        memory = state.memory
        h, key, logits, _ = adapter.encode(x[None], state.recurrent, 1)
        r = torch.softmax(logits, -1)[0].tolist()
        self.r = r + [0.0] * (len(stream.space) - len(r))
        self.h, self.now = h[0], int(memory.time[0])
        read = memory.read(key)
        self.cells: dict[int, list[int]] = {}
        for m in range(int(memory.used[0])):
            self.cells.setdefault(int(memory.label[0, m]), []).append(m)
        scores = read.scores(len(self.r))[0].tolist()
        self.s = {y: scores[y] for y in self.cells}
        self.features = {y: self._label(memory, read, key[0], y) for y in self.cells}
        self.state = state.combiner
        self.signals = self._stream(self.state.past[0].tolist())

    def _label(self, memory: Any, read: Any, key: Tensor, y: int) -> list[float]:
        cells = self.cells[y]
        w = {m: float(read.weight[0, m]) for m in cells}
        M = sum(w[m] * memory.v[0, m] for m in cells)
        alpha = sum(w[m] * float(memory.alpha[0, m]) for m in cells)
        age = min(self.now - int(memory.written[0, m]) + 1 for m in cells)
        first = max(self.now - int(memory.born[0, m]) + 1 for m in cells)
        writes = sum(int(memory.writes[0, m]) for m in cells)
        usual = max((first - age) / max(writes - 1, 1), 1.0)
        rates = [
            sum(
                float(memory.rates[0, m, i]) * fade ** (self.now - int(memory.written[0, m]))
                for m in cells
            )
            for i, fade in enumerate((0.9, 0.97))
        ]
        size, length = float(M.norm()), float(key.norm())
        cos = float(M @ key) / (size * length) if size * length else 0.0
        self.best = max(getattr(self, "best", -1.0), cos)
        self.match = getattr(self, "match", 0.0) + max(cos * size, 0.0)
        return [
            math.log(max(alpha, 1e-3)), math.log(age) / 2, float(age < 2), log(self.r[y]) / 5,
            (math.log(usual) - math.log(age)) * (writes > 1) / 2,
            *(math.log(rate + 0.01) / 2 for rate in rates),
            cos, math.log1p(max(cos * size, 0.0)),
        ]  # fmt: skip

    def _stream(self, past: list[float]) -> list[float]:
        overlap = sum(self.r[y] for y in self.cells)
        left = max(1 - overlap, 1e-6)
        rest = [p / left for y, p in enumerate(self.r) if y not in self.cells]
        top = max(rest, default=0.0)
        return [
            math.log(past[0] + 1) / 3, math.log(len(self.cells) + 1) / 3, 1.0,
            entropy(self.r) / 5, log(max(self.r)) / 3,
            max(entropy(rest), 0.0) / 5, (min(log(top * left) - math.log(left), 0.0)) / 3,
            entropy(self.s.values()) / 2, log(max(self.s.values())) / 2,
            overlap, math.log(left) / 5, *past[1:], self.best, math.log1p(self.match) / 2,
        ]  # fmt: skip


def softmax(scores: dict[int, float]) -> dict[int, float]:
    top = max(scores.values())
    total = sum(math.exp(score - top) for score in scores.values())
    return {y: math.exp(score - top) / total for y, score in scores.items()}


def spread(s: dict[int, float]) -> list[float]:
    return [entropy(s.values()) / 2, math.log(max(s.values())) / 2]


def slow_step(combiner: StreamCombiner, stream: Any, x: Tensor) -> tuple[float, dict[int, float]]:
    """Theta, and s_y exp(f_y) label by label."""
    look = SlowLook(stream, x)
    state = look.state
    signals = torch.tensor(look.signals)
    score = {}
    for y, features in look.features.items():
        f = torch.tensor(features)
        inner = torch.relu(
            combiner.score_inner @ f + combiner.score_stream @ signals + combiner.score_bias
        )
        inner = torch.relu(combiner.score_middle @ inner)
        score[y] = log(look.s[y]) + float(combiner.score_plain @ f + combiner.score_outer @ inner)
    guess = softmax(score)
    echo = state.echo[0].tolist()
    seen = torch.tensor([*look.signals, *echo, *spread(guess)])
    seen = torch.cat([seen, look.h]) if combiner.sees_h else seen
    w_in, w_mu, b_in, b_mu = combiner.gru.all_weights[0]
    mu = gru(w_in @ seen + b_in, w_mu @ state.mu[0] + b_mu, state.mu[0])
    for y, features in look.features.items():
        score[y] += float(mu @ combiner.score_moved @ torch.tensor(features))
    s = softmax(score)
    every = torch.cat([mu, torch.tensor([*look.signals, *echo, *spread(s)])])
    z = float(combiner.theta_outer @ torch.relu(combiner.theta_inner @ every))
    return 1 / (1 + math.exp(-z - float(combiner.bias_theta))), s


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("sees_h", [False, True])
def test_theta_and_scores_are_as_the_docstring_says(cells: int, sees_h: bool) -> None:
    combiner = random_combiner(kind="stream", rescorer=5, sees_h=sees_h)
    assert isinstance(combiner, StreamCombiner)
    memory = MemoryConfig(cells_per_label=cells, capacity=7)
    stream = Adapter(Stateless(), memory=memory, combiner=combiner).stream()
    x, ys = random_stream(3, 25, range(4), ["emu", "owl"])
    with torch.no_grad():
        for t, y in enumerate(ys):
            p = stream.predict(x[t])
            if cells_in(stream):
                theta, expected = slow_step(combiner, stream, x[t])
                assert p.memory_probs is not None and p.theta is not None
                assert float(p.theta[0]) == pytest.approx(theta, abs=1e-5)
                for label, value in enumerate(p.memory_probs.tolist()):
                    assert value == pytest.approx(expected.get(label, 0.0), abs=1e-5)
            stream.observe(y)


def test_it_remembers_how_labels_came() -> None:
    stream = Adapter(Stateless(), combiner=Combiner(kind="stream")).stream()
    for y, new, again in (("emu", 1.0, 0.0), ("emu", 0.0, 1.0), ("owl", 1.0, 0.0)):
        stream.predict(torch.ones(3))
        before = stream.tensors()["combiner.past"][0].tolist()
        stream.observe(y)
        kept = stream.tensors()
        past = kept["combiner.past"][0].tolist()
        assert past[:3] == [before[0] + 1, new, 1.0]  # the model knows neither
        assert past[4] == pytest.approx(0.9 * before[4] + 0.1 * new)
        assert past[7] == pytest.approx(0.9 * before[7] + 0.1 * again)
        assert kept["combiner.echo"][0, 0] == again  # the only label in memory is the guess


def test_its_state_does_not_grow_with_the_labels() -> None:
    combiner = Combiner(kind="stream", hidden=8).build(4)
    sizes = [
        sum(t.numel() for t in combiner.initial_state(1, width).tensors().values())
        for width in (10, 40_000)
    ]
    assert sizes[0] == sizes[1]


def test_without_correction_only_theta_is_learned() -> None:
    combiner = random_combiner(kind="stream", correct=False)
    adapter = Adapter(Stateless(), combiner=combiner)
    plain = Adapter(Stateless(), combiner=0.5, memory=adapter.memory)
    x, ys = random_stream(4, 15, range(4))
    a, b = adapter.stream(), plain.stream()
    for t, y in enumerate(ys):
        p, q = a.predict(x[t]), b.predict(x[t])
        if cells_in(a) == cells_in(b) == 0:
            assert p.memory_probs is not None and q.memory_probs is not None
            assert torch.equal(p.memory_probs, q.memory_probs)
        assert float(p.probs.sum()) == pytest.approx(1.0, abs=1e-6)
        a.observe(y)
        b.observe(y)
    assert "score_outer" not in combiner.state_dict()


@pytest.mark.parametrize("margin", [1.0, math.inf])
def test_training_uses_all_of_it(margin: float) -> None:
    combiner = Combiner(kind="stream", hidden=6, seed=1)
    adapter = Adapter(Stateless(), memory=MemoryConfig(margin=margin), combiner=combiner)
    recorded = [random_stream(seed, 12, range(4), ["emu"]) for seed in range(16)]
    held = {name: p.detach().clone() for name, p in combiner.named_parameters()}
    result = adapter.fit(recorded[4:], validation=recorded[:4], epochs=4, lr=0.02, batch_size=6)
    assert result.best < result.before
    assert all(not torch.equal(p, held[name]) for name, p in combiner.named_parameters())
    assert not torch.equal(combiner.signals_mean, torch.zeros_like(combiner.signals_mean))
    assert not torch.equal(combiner.features_spread, torch.ones_like(combiner.features_spread))


def test_a_replay_measures_what_one_reading_does() -> None:
    recorded = [random_stream(seed, 12, range(4), ["emu"]) for seed in range(12)]
    found = []
    for batch_size, margin in ((6, math.inf), (6, 1e9)):  # nobody is so sure
        combiner = Combiner(kind="stream", hidden=6)
        adapter = Adapter(Stateless(), memory=MemoryConfig(margin=margin), combiner=combiner)
        adapter.fit(recorded[4:], validation=recorded[:4], epochs=1, batch_size=batch_size)
        found.append(combiner)
    once, replayed = (dict(combiner.named_buffers()) for combiner in found)
    for name, buffer in once.items():
        assert torch.allclose(buffer, replayed[name], atol=1e-5), name


@pytest.mark.parametrize("margin", [1.0, math.inf])
@pytest.mark.parametrize("group", GROUPS)
def test_what_it_is_blind_to_changes_nothing(group: str, margin: float) -> None:
    combiner = Combiner(kind="stream", hidden=6, blind=[group])
    adapter = Adapter(Stateless(), memory=MemoryConfig(margin=margin), combiner=combiner)
    recorded = [random_stream(seed, 12, range(4), ["emu"]) for seed in range(12)]
    adapter.fit(recorded[4:], validation=recorded[:4], epochs=2, lr=0.05, batch_size=6)
    x, ys = random_stream(50, 15, range(4))
    batch = adapter.streams(2)
    for t, y in enumerate(ys):
        batch.predict(x[t].expand(2, -1))
        batch.observe([y, y])
    h = torch.ones(2, adapter.dim or 0)
    state = adapter.restore(batch.tensors(), 2)
    read = state.memory.read(h)
    view = View(h, torch.full((2, 4), 0.25), read.spread(read.score, 4), read)
    look = combiner.scaled(combiner.look(state.combiner.past, view))
    of_labels, of_stream = blind_columns([group], 1)
    assert not look.features[..., of_labels].any() and not look.signals[..., of_stream].any()
    assert look.signals.any()
    rest = [c for c in range(look.features.shape[-1]) if c not in of_labels]
    assert look.features[..., rest].any()


def test_groups_have_no_column_in_common_and_unknown_ones_are_refused() -> None:
    for side in range(2):
        columns = [c for group in GROUPS for c in blind_columns([group], 2)[side]]
        assert len(columns) == len(set(columns))
    with pytest.raises(ConfigError, match="recency"):
        Combiner(kind="stream", blind=["colour"])


def test_an_explanation_adds_up_to_the_rescored_belief() -> None:
    combiner = random_combiner(kind="stream", rescorer=5)
    stream = Adapter(
        Stateless(), memory=MemoryConfig(cells_per_label=2, margin=50.0), combiner=combiner
    ).stream()
    x, ys = random_stream(6, 12, range(4), ["emu"])
    for t, y in enumerate(ys):
        stream.predict(x[t])
        stream.observe(y)
    p = stream.predict(x[0])
    assert p.memory_probs is not None
    explained = stream.explain(p)
    assert sum(cell.share for cell in explained) == pytest.approx(1.0, abs=1e-5)
    for label, s in zip(p.labels, p.memory_probs.tolist(), strict=True):
        shares = [cell.share for cell in explained if cell.label == label]
        assert sum(shares) == pytest.approx(s, abs=1e-5)
