from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from labelmem.logs.scores import Scores, measured
from labelmem.metrics import reciprocal_rank
from labelmem.scoring import ranked


def test_measures_are_those_of_a_loop() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.softmax(2 * torch.randn(50, 7, generator=generator), dim=1)
    probs[::5] = 1 / 7  # ties
    y = torch.randint(9, (50,), generator=generator)  # 7 and 8 have no name
    found = measured(ranked(probs, y), y < 7, top=3)
    for i in range(50):
        row = found[i].tolist()
        if y[i] >= 7:
            assert row == [1, 0, 0, 0, 0, 0]
            continue
        p = float(probs[i, y[i]])
        above = int((probs[i] > p).sum())
        rank = 1 + above + (int((probs[i] == p).sum()) - 1) / 2
        expected = [1, 1 / rank, rank < 1.5, rank <= 3, 1, -math.log(p)]
        assert row == pytest.approx([float(x) for x in expected])
    named = y < 7
    assert torch.allclose(found[named, 1], reciprocal_rank(probs[named], y[named]))


def test_nothing_is_known_yet() -> None:
    figures = ranked(torch.zeros(2, 0), torch.tensor([0, 3]))
    found = measured(figures, torch.tensor([False, False]), 5)
    assert found.tolist() == [[1, 0, 0, 0, 0, 0]] * 2


def test_gains_are_paired() -> None:
    rng = np.random.default_rng(0)
    a, b = Scores(40), Scores(40)
    users = list(range(40))
    hard = rng.gamma(2.0, size=40)  # users differ a lot
    for scores, better in ((a, 0.1), (b, 0.0)):
        rows = np.ones((40, 6))
        rows[:, 5] = 3 * hard - better
        rows[:, 1] = 0.5 + better
        scores.add(users, rows)
    wide = a.intervals()["log_perplexity"]
    gain = a.gains(b)["log_perplexity"]
    assert wide.high - wide.low > 1
    assert (gain.low, gain.value, gain.high) == pytest.approx((0.1, 0.1, 0.1))
    assert b.gains(a)["mrr"].high < 0


def test_without_events_there_are_no_figures() -> None:
    assert all(math.isnan(value) for value in Scores(2).figures().values())
