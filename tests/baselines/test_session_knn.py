"""Session-based nearest neighbours against Python's sets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import run

from labelmem.baselines.session_knn import SessionKNN, SessionKNNOptions
from labelmem.errors import ConfigError, MismatchError

LABELS = 12


def sessions(seed: int, n: int, longest: int, labels: int = LABELS) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (n,), generator=generator).tolist()
    return [torch.randint(labels, (k,), generator=generator).tolist() for k in lengths]


def votes(history: list[Any], past: list[list[int]], o: SessionKNNOptions) -> dict[int, float]:
    """Normalised votes after a history, oldest past session first."""
    weight: dict[Any, float] = {}
    for t, y in enumerate(history):
        if y in range(LABELS):
            weight[y] = o.decay ** (len(history) - 1 - t)
    candidates = [s for s in range(len(past)) if weight.keys() & set(past[s])][-o.candidates :]
    length = math.sqrt(sum(w * w for w in weight.values()))
    similar = [
        (sum(weight.get(y, 0.0) for y in set(past[s])) / (length * math.sqrt(len(set(past[s])))), s)
        for s in candidates
    ]
    shares: dict[int, float] = {}
    for similarity, s in sorted(similar, reverse=True)[: o.neighbours]:
        for y in set(past[s]):
            shares[y] = shares.get(y, 0.0) + similarity
    total = sum(shares.values())
    return {y: v / total for y, v in shares.items()}


@pytest.mark.parametrize(
    "options",
    [
        SessionKNNOptions(),
        SessionKNNOptions(theta=0.9, neighbours=3, decay=0.7),
        SessionKNNOptions(neighbours=4, candidates=6, decay=1.0),
        SessionKNNOptions(theta=1.0, neighbours=1, candidates=1),
    ],
)
def test_it_votes_as_the_sets_do(options: SessionKNNOptions) -> None:
    past = sessions(0, 25, longest=6)
    method = SessionKNN(LABELS, options).fit([(None, session) for session in past])
    unigram = method.background(1, LABELS)[0].tolist()
    users: list[list[Any]] = [[3, "new", 7, 3, 3, 0, "other", 9], *sessions(9, 4, longest=12)]
    for ys in users:
        for t, p in enumerate(run(method.stream(), torch.zeros(len(ys)), ys)):
            shares = votes(ys[:t], past, options)
            theta = options.theta if shares else 0.0
            expected = [
                (1 - theta) * unigram[y] + theta * shares.get(y, 0.0) for y in range(LABELS)
            ]
            assert p[:LABELS].tolist() == pytest.approx(expected, abs=1e-6)
            assert not p[LABELS:].any()


@pytest.mark.parametrize("decay", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("candidates", [5, 1000])
def test_streams_that_repeat_themselves_side_by_side(decay: float, candidates: int) -> None:
    # Few labels: they come again and again, sessions are pushed out, and many are equally similar.
    options = SessionKNNOptions(theta=1.0, neighbours=4, candidates=candidates, decay=decay)
    past = sessions(1, 40, longest=3, labels=5)
    users = [torch.randint(6, (n,), generator=torch.manual_seed(n)).tolist() for n in (90, 5, 60)]
    method = SessionKNN(LABELS, options).fit([(None, session) for session in past])
    batch = method.streams(3)
    for t in range(90):
        probs = batch.predict(torch.zeros(3))
        for user, p in zip(users, probs, strict=True):
            shares = votes(user[:t], past, options)
            expected = [shares.get(y, 0.0) for y in range(LABELS)]
            assert not shares or p.tolist() == pytest.approx(expected, abs=1e-6)
        mask = [t < len(user) for user in users]
        batch.observe([user[t] if t < len(user) else 0 for user in users], mask)


def test_a_label_from_very_long_ago_still_counts_as_shared() -> None:
    options = SessionKNNOptions(theta=1.0, candidates=2, decay=0.001)
    past = [[1, 3], [1, 4], [0, 5], [0, 1, 6], [0, 7]]
    stream = SessionKNN(LABELS, options).fit([(None, session) for session in past]).stream()
    history: list[Any] = [0, *[1] * 120]
    run(stream, torch.zeros(len(history)), history)
    assert 0.001**120 == 0  # so it weighs nothing, but its sessions are the latest
    shares = votes(history, past, options)
    expected = [shares.get(y, 0.0) for y in range(LABELS)]
    assert stream.predict(0).probs.tolist() == pytest.approx(expected, abs=1e-6)
    assert set(shares) == {0, 1, 6, 7} and shares[7] == 0


def test_labels_that_are_not_known_change_no_neighbour() -> None:
    past = [(None, session) for session in sessions(0, 25, longest=6)]
    stream = SessionKNN(LABELS, SessionKNNOptions(decay=0.001)).fit(past).stream()
    run(stream, torch.zeros(3), [3, 7, 3])
    before = stream.predict(0).probs
    run(stream, torch.zeros(120), ["new"] * 120)
    assert torch.equal(stream.predict(0).probs[:LABELS], before)


def test_a_saved_stream_goes_on_with_the_same_sessions_only(tmp_path: Path) -> None:
    past = [(None, session) for session in sessions(0, 25, longest=6)]
    method = SessionKNN(LABELS, SessionKNNOptions(decay=0.7, candidates=6)).fit(past)
    stream = method.stream()
    run(stream, torch.zeros(6), [3, 7, 3, "new", 0, 7])
    stream.save(tmp_path / "s")
    other = method.load_stream(tmp_path / "s")
    ys = [7, 1, "new", 3]
    for p, q in zip(run(stream, torch.zeros(4), ys), run(other, torch.zeros(4), ys), strict=True):
        assert torch.equal(p, q)
    assert method.variant(theta=0.9).load_stream(tmp_path / "s").observed == 6
    with pytest.raises(MismatchError, match="decay"):
        method.variant(decay=0.8).load_stream(tmp_path / "s")
    with pytest.raises(MismatchError, match="sessions"):
        method.variant().fit(past[1:]).load_stream(tmp_path / "s")


def test_of_equally_similar_sessions_the_latest_vote() -> None:
    past = [(None, [0, 1]), (None, [0, 2]), (None, [0, 3])]
    options = SessionKNNOptions(theta=1.0, neighbours=1)
    stream = SessionKNN(4, options).fit(past).stream()
    run(stream, torch.zeros(1), [0])
    assert stream.predict(0).probs.tolist() == [0.5, 0, 0, 0.5]


def test_without_a_neighbour_it_is_the_unigram() -> None:
    method = SessionKNN(3, SessionKNNOptions(theta=1.0)).fit([(None, [0, 1, 1])])
    stream, unigram = method.stream(), method.background(1, 3)[0]
    assert torch.equal(stream.predict(0).probs, unigram)
    run(stream, torch.zeros(1), [2])  # no session has it
    assert torch.equal(stream.predict(0).probs, unigram)
    assert torch.equal(SessionKNN(3).stream().predict(0).probs, torch.ones(3) / 3)


@pytest.mark.parametrize("past", [None, [], [[], []], [["other"]]], ids=str)
def test_without_sessions_or_labels_in_them_nobody_votes(past: list[list[Any]] | None) -> None:
    method = SessionKNN(3)
    if past is not None:
        method.fit([(None, session) for session in past])
    state, y = method.initial_state(2), torch.tensor([0, 3])
    for _ in range(3):
        step = method.advance(state, None, 4)
        assert torch.equal(step.probs, torch.tensor([[1 / 3] * 3 + [0]]).expand(2, 4))
        assert step.memory_probs is None or not step.memory_probs.any()
        method.commit(state, step, y, None)


def test_many_short_sessions_are_fine() -> None:
    generator = torch.Generator().manual_seed(0)
    past = [(None, row) for row in torch.randint(500, (5000, 8), generator=generator)]
    batch = SessionKNN(500).fit(past).streams(16)
    for row in torch.randint(500, (5, 16), generator=generator):
        torch.testing.assert_close(batch.predict(row).sum(dim=1), torch.ones(16))
        batch.observe(row)


@pytest.mark.parametrize(
    "wrong", [{"theta": 2.0}, {"neighbours": 0}, {"candidates": 0}, {"decay": 0.0}]
)
def test_options_have_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SessionKNNOptions(**wrong)
