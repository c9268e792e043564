"""What is taught and what is shown later never overlap."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from labelmem_paper.experiments.adapt.dealing import deal

LABELS = np.random.default_rng(0).permutation(np.arange(200) % 10)


@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_known_labels_are_taught_and_all_else_is_shown(seed: int) -> None:
    dealt = deal(LABELS, known=6, seed=seed)
    assert (dealt.taught ^ dealt.shown).all()
    assert (np.bincount(dealt.y[dealt.taught], minlength=10) == [10] * 6 + [0] * 4).all()
    assert (np.bincount(dealt.y[dealt.shown], minlength=10) == [10] * 6 + [20] * 4).all()


def test_labels_keep_together() -> None:
    dealt = deal(LABELS, known=6, seed=0)
    pairs = set(zip(LABELS.tolist(), dealt.y.tolist(), strict=True))
    assert len(pairs) == 10 and sorted(b for _, b in pairs) == list(range(10))


def test_labels_may_be_names() -> None:
    dealt = deal(["sky", "path", "sky", "path"], known=1, seed=0)
    assert dealt.taught.sum() == 1 and dealt.shown.sum() == 3


def test_some_labels_may_take_no_part() -> None:
    dealt = deal(LABELS, known=6, seed=0, new=1)
    assert set(dealt.y[dealt.shown].tolist()) == set(range(7))


def test_a_given_part_trains() -> None:
    teachable = np.arange(200) < 150
    dealt = deal(LABELS, known=6, seed=0, teachable=teachable)
    assert (dealt.taught == (teachable & (dealt.y < 6))).all()
    assert (dealt.shown == ~teachable).all()


def test_the_seed_draws_the_known_labels() -> None:
    known = {frozenset(LABELS[deal(LABELS, 6, seed).taught].tolist()) for seed in range(5)}
    assert len(known) > 1


def test_a_task_has_what_was_dealt() -> None:
    dealt = deal(LABELS, known=6, seed=0)
    h = torch.arange(200.0)[:, None]
    taught, shown = h[torch.from_numpy(dealt.taught)], h[torch.from_numpy(dealt.shown)]
    task = dealt.task("toy", (torch.zeros(6, 1), torch.zeros(6)), taught, shown, seed=0)
    assert task.labels == 6 and len(task.train_h) == len(task.train_y) == 60
    (stream,) = task.streams["new"]
    assert not set(stream.h[:, 0].tolist()) & set(task.train_h[:, 0].tolist())
    assert (torch.from_numpy(dealt.y)[stream.h[:, 0].long()] == stream.y).all()
