"""The index of sessions against Python's sets."""

from __future__ import annotations

import pytest
import torch

from labelmem.baselines.session_index import SessionIndex

ITEMS = 9


def made(n: int, seed: int = 0) -> tuple[list[set[int]], SessionIndex]:
    """Sessions, the latest first as the index numbers them, and the index."""
    generator = torch.Generator().manual_seed(seed)
    given = [torch.randint(-1, ITEMS, (k % 6,), generator=generator) for k in range(n)]
    return [{*s.tolist()} - {-1} for s in reversed(given)], SessionIndex.of(given, ITEMS)


def test_both_ways_it_knows_who_holds_what() -> None:
    sets, index = made(30)
    assert len(index) == 30 and index.sizes.tolist() == [*map(len, sets), 0]
    row, session = index.sessions_with(torch.arange(ITEMS), most=4)
    for item in range(ITEMS):
        holders = [s for s in range(30) if item in sets[s]]
        assert session[row == item].tolist() == holders[:4]


@pytest.mark.parametrize("sessions", [8, 40, 200])
@pytest.mark.parametrize("voters", [1, 3, 20])
def test_votes_whether_few_or_most_sessions_vote(sessions: int, voters: int) -> None:
    sets, index = made(sessions)
    generator = torch.Generator().manual_seed(1)
    given = [torch.randperm(sessions + 1, generator=generator)[:voters] for _ in range(5)]
    session = torch.stack(given)
    weight = torch.rand(session.shape, generator=generator, dtype=torch.float64)
    weight[session == sessions] = 0  # no session
    votes = index.votes(session, weight, torch.float32)
    assert votes.dtype == torch.float32 and votes.is_contiguous()
    for n in range(5):
        expected = [0.0] * ITEMS
        for s, w in zip(session[n].tolist(), weight[n].tolist(), strict=True):
            for item in sets[s] if s < sessions else ():
                expected[item] += w
        assert votes[n].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_digest_tells_sessions_apart() -> None:
    assert made(9)[1].digest == made(9)[1].digest != made(9, seed=1)[1].digest
