"""A rehearsal is the same situation, and is made of nothing but training examples."""

from __future__ import annotations

from dataclasses import replace

import torch
from experiments.adapt.toy_task import KNOWN, toy_task
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.rehearsal import RehearsalOptions, rehearse


def rows(h: torch.Tensor) -> set[tuple[float, ...]]:
    return {tuple(row) for row in h.tolist()}


def shown(task: FrozenTask) -> set[tuple[float, ...]]:
    return set().union(*(rows(one.h) for streams in task.streams.values() for one in streams))


def test_nothing_that_the_task_shows_takes_part() -> None:
    task = toy_task()
    rehearsal = rehearse(task, 0, RehearsalOptions())
    used = rows(rehearsal.train_h) | shown(rehearsal)
    assert used <= rows(task.train_h)
    assert not used & shown(task)
    # Who may not look at the shown streams finds the same without them.
    blind = rehearse(replace(task, streams={}), 0, RehearsalOptions())
    assert torch.equal(blind.weight, rehearsal.weight)


def test_a_third_of_the_labels_is_new_and_no_example_comes_twice() -> None:
    rehearsal = rehearse(toy_task(), 0, RehearsalOptions())
    assert rehearsal.labels == KNOWN - KNOWN // 3 == rehearsal.head().out_features
    assert not rows(rehearsal.train_h) & shown(rehearsal)
    labels = set().union(*(set(s.y.tolist()) for s in rehearsal.streams["rehearsal"]))
    assert labels == set(range(KNOWN))


def test_its_size_is_bounded() -> None:
    small = RehearsalOptions(rows=40, streams=2, steps=7)
    rehearsal = rehearse(toy_task(), 0, small)
    streams = rehearsal.streams["rehearsal"]
    assert len(streams) <= 6 and all(len(stream) <= 7 for stream in streams)
    assert len(rows(rehearsal.train_h) | shown(rehearsal)) <= 40


def test_the_seed_decides() -> None:
    first, again, other = (rehearse(toy_task(), seed, RehearsalOptions()) for seed in (0, 0, 1))
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)


def test_all_heads_have_as_many_labels() -> None:
    small = RehearsalOptions(rows=10)  # so few that some labels are missing
    assert len({rehearse(toy_task(), seed, small).labels for seed in range(8)}) == 1
