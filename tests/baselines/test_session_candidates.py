"""The list of candidates against one that keeps everything."""

from __future__ import annotations

import pytest
import torch

from labelmem.baselines.session_candidates import Candidates

STREAMS, SESSIONS, LABELS = 3, 30, 8


@pytest.mark.parametrize("most", [1, 4, SESSIONS])
def test_it_holds_the_latest_that_share_a_label(most: int) -> None:
    generator = torch.Generator().manual_seed(0)
    holds = torch.rand(LABELS, SESSIONS, generator=generator) < 0.15
    shared = torch.zeros(STREAMS, SESSIONS, dtype=torch.float64)
    met = torch.zeros(STREAMS, LABELS, dtype=torch.bool)
    now = Candidates.empty(STREAMS, most, SESSIONS, torch.device("cpu"))
    for t in range(40):
        y = torch.randint(LABELS, (STREAMS,), generator=generator)
        joins = torch.rand(STREAMS, generator=generator) < 0.7
        met_before = met.gather(1, y[:, None])[:, 0]
        gain = torch.where(met_before, 0.0, 1.0 + t)
        row, session = (holds[y] & joins[:, None]).nonzero(as_tuple=True)
        before = now
        now = now.met(row, session, gain, none=SESSIONS)
        shared[row, session] += gain[row]
        met[torch.arange(STREAMS)[joins], y[joins]] = True
        for n in range(STREAMS):
            latest = shared[n].nonzero()[:most, 0]
            nothing = [SESSIONS] * (most - len(latest))
            assert now.session[n].tolist() == [*latest.tolist(), *nothing]
            assert now.overlap[n].tolist() == [*shared[n, latest].tolist(), *[0.0] * len(nothing)]
            if not joins[n]:
                assert torch.equal(now.overlap[n], before.overlap[n])


def test_where_nobody_meets_a_label_nothing_changes() -> None:
    empty = Candidates.empty(2, 3, SESSIONS, torch.device("cpu"))
    nobody = torch.zeros(0, dtype=torch.int64)
    after = empty.met(nobody, nobody, torch.ones(2), none=SESSIONS)
    assert torch.equal(after.session, empty.session) and not after.overlap.any()
