"""The combiner with one state per stream, against a loop over labels in plain Python."""

from __future__ import annotations

import math

import pytest
import torch
from toys import Stateless, make_adapter, random_combiner, random_stream, run

from labelmem import Adapter, Combiner, MemoryConfig
from labelmem.combining import gru
from labelmem.stream_combiner import StreamCombiner


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


def slow_rescore(combiner: StreamCombiner, stream: object, x: torch.Tensor) -> dict[int, float]:
    """s exp(f) label by label, from the features named in the docstring."""
    state = stream._state  # type: ignore[attr-defined]
    adapter = stream.method  # type: ignore[attr-defined]
    h, key, logits, _ = adapter.encode(x[None], state.recurrent, 1)
    r = torch.softmax(logits, -1)[0].tolist()
    read = state.memory.read(key)
    k = read.label.shape[1]
    first: dict[int, int] = {}
    for m in range(k):
        if int(read.label[0, m]) >= 0:
            first.setdefault(int(read.label[0, m]), int(read.group[0, m]))
    s = {y: float(read.score[0, m]) for y, m in first.items()}
    own = {y: [m for m in range(k) if int(read.label[0, m]) == y] for y in first}
    width = len(stream.space)  # type: ignore[attr-defined]
    r += [0.0] * (width - len(r))

    def log(p: float) -> float:
        return max(math.log(max(p, 1e-30)), -15.0)

    def entropy(ps: list[float]) -> float:
        return -sum(p * log(p) for p in ps)

    overlap = sum(r[y] for y in first)
    signals = [
        math.log(float(state.combiner.steps) + 1) / 3, math.log(len(first) + 1) / 3, 1.0,
        entropy(r) / 5, log(max(r)) / 3, entropy(list(s.values())) / 2, log(max(s.values())) / 2,
        overlap, math.log(max(overlap, 1e-6)) / 5,
        *state.combiner.last[0].tolist(), *state.combiner.novelty[0].tolist(),
    ]  # fmt: skip
    seen = torch.cat([torch.tensor(signals), h[0]]) if combiner.sees_h else torch.tensor(signals)
    mu = gru(
        combiner.weight_input @ seen + combiner.bias_input,
        combiner.weight_mu @ state.combiner.mu[0] + combiner.bias_mu,
        state.combiner.mu[0],
    ).tolist()
    scores = {}
    for y, cells in own.items():
        alpha = sum(float(read.weight[0, m] * read.alpha[0, m]) for m in cells)
        age = min(int(state.memory.time[0] - state.memory.written[0, m]) + 1 for m in cells)
        features = [
            math.log(max(alpha, 1e-3)), math.log(max(age, 1)) / 2, float(age < 2),
            float(read.cosine[0, first[y]]), log(s[y]) / 3, log(r[y]) / 5,
        ]  # fmt: skip
        every = torch.tensor([*features, *signals, *mu])
        inner = torch.relu(combiner.weight_inner @ every + combiner.bias_inner)
        f = float(torch.tensor(features) @ combiner.weight_plain + inner @ combiner.weight_outer)
        scores[y] = s[y] * math.exp(f)
    total = sum(scores.values())
    return {y: score / total for y, score in scores.items()}


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("sees_h", [False, True])
def test_labels_in_memory_are_rescored_as_the_docstring_says(cells: int, sees_h: bool) -> None:
    combiner = random_combiner(kind="stream", rescorer=5, sees_h=sees_h)
    assert isinstance(combiner, StreamCombiner)
    memory = MemoryConfig(cells_per_label=cells, capacity=7)
    stream = Adapter(Stateless(), memory=memory, combiner=combiner).stream()
    x, ys = random_stream(3, 25, range(4), ["emu", "owl"])
    with torch.no_grad():
        for t, y in enumerate(ys):
            p = stream.predict(x[t])
            if len(stream._state.memory):
                expected = slow_rescore(combiner, stream, x[t])
                assert p.memory_probs is not None
                for label, value in enumerate(p.memory_probs.tolist()):
                    assert value == pytest.approx(expected.get(label, 0.0), abs=1e-5)
            stream.observe(y)


def test_it_remembers_how_labels_came() -> None:
    stream = Adapter(Stateless(), combiner=Combiner(kind="stream")).stream()
    for y, new in (("emu", 1.0), ("emu", 0.0), ("owl", 1.0)):
        stream.predict(torch.ones(3))
        stream.observe(y)
        last = stream._state.combiner.last[0].tolist()
        assert last[2] == new
        assert last[0] == 1.0  # the model knows neither
    assert float(stream._state.combiner.steps) == 3
    novelty = stream._state.combiner.novelty[0].tolist()
    assert novelty[1] == pytest.approx(0.9 * (0.9 * 0.1) + 0.1)


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
        if len(a._state.memory) == len(b._state.memory) == 0:
            assert p.memory_probs is not None and q.memory_probs is not None
            assert torch.equal(p.memory_probs, q.memory_probs)
        assert float(p.probs.sum()) == pytest.approx(1.0, abs=1e-6)
        a.observe(y)
        b.observe(y)
    assert "weight_outer" not in combiner.state_dict()


def test_training_uses_all_of_it() -> None:
    adapter = Adapter(Stateless(), combiner=Combiner(kind="stream", hidden=6, seed=1))
    recorded = [random_stream(seed, 12, range(4), ["emu"]) for seed in range(16)]
    held = {name: t.clone() for name, t in adapter.combiner.state_dict().items()}  # type: ignore[union-attr]
    result = adapter.fit(recorded[4:], validation=recorded[:4], epochs=4, lr=0.02, batch_size=6)
    assert result.best < result.before
    now = adapter.combiner.state_dict()  # type: ignore[union-attr]
    assert all(not torch.equal(now[name], t) for name, t in held.items())


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
