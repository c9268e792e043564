"""Session-based nearest neighbours against Python's sets."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from toys import run

from labelmem.baselines.session_knn import SessionKNN, SessionKNNOptions
from labelmem.errors import ConfigError

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
