from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from labelmem.demo import digits
from labelmem.demo.digits import KNOWN, draw_users, make_digits, split_images
from labelmem.demo.habits import make_habits, recorded
from labelmem.demo.run import GRIDS, chosen_adapters, chosen_baseline
from labelmem.demo.synthetic import SyntheticRecipe, generate
from labelmem.demo.task import Size, Task, seeded
from labelmem.evaluation import evaluate

QUICK = Size.quick()


def pictures(streams: Any) -> set[bytes]:
    return {x.numpy().tobytes() for inputs, _ in streams for x in inputs}


def test_pools_of_pictures_share_none() -> None:
    y = np.random.default_rng(0).permutation(np.arange(10).repeat(40))
    pools = split_images(y, np.random.default_rng(1))
    everything = np.concatenate(pools)
    assert sorted(everything.tolist()) == list(range(400))
    train, valid, test = pools
    assert y[train].max() < KNOWN
    assert set(y[valid]) == set(y[test]) == set(range(10))


def test_users_draw_their_favourites_often_and_nothing_twice() -> None:
    y = np.arange(10).repeat(60)
    X = np.arange(600.0)[:, None]  # every picture is its own number
    users = draw_users(X, y, np.arange(600), 40, 50, np.random.default_rng(0))
    shares = []
    for inputs, labels in users:
        drawn = inputs[:, 0].tolist()
        assert len(set(drawn)) == 50
        assert labels == [int(y[int(picture)]) for picture in drawn]
        shares.append(np.sort(np.bincount(labels, minlength=10))[-digits.FAVOURITES :].sum() / 50)
    assert np.mean(shares) == pytest.approx(digits.OFTEN + (1 - digits.OFTEN) * 0.4, abs=0.04)


def test_a_picture_comes_again_only_when_all_have_come() -> None:
    y = np.arange(10).repeat(2)
    X = np.arange(20.0)[:, None]
    [(inputs, labels)] = draw_users(X, y, np.arange(20), 1, 60, np.random.default_rng(0))
    for digit in set(labels):
        own = [int(x) for x, label in zip(inputs[:, 0], labels, strict=True) if label == digit]
        assert all(a != b for a, b in zip(own[::2], own[1::2], strict=False))


def test_the_digit_model_meets_pictures_it_has_not_seen() -> None:
    task = make_digits(QUICK, seed=1)
    [(_, taught)] = task.train
    assert set(taught) == set(range(KNOWN)) and task.labels == KNOWN
    train, valid, test = (pictures(part) for part in (task.train, task.valid, task.test))
    # The bundled pictures hold no copy of another, so that equal bytes are the same picture.
    assert not train & valid and not train & test and not valid & test
    assert max(max(labels) for _, labels in task.test) >= KNOWN


def test_inputs_of_habits_are_the_visits_before() -> None:
    data = generate(SyntheticRecipe(users=12, labels=30, new_labels=5, favourites=5), seed=2)
    streams = recorded(data, "test")
    assert any(max(visits) >= 30 for _, visits in streams)
    for inputs, visits in streams:
        expected = [30] + [min(label, 30) for label in visits[:-1]]
        assert inputs.tolist() == expected


def test_habits_validates_and_tests_on_different_users_with_new_venues() -> None:
    task = make_habits(QUICK, seed=0)
    assert all(max(visits) < task.labels for _, visits in task.train)
    for part in (task.valid, task.test):
        assert any(max(visits) >= task.labels for _, visits in part)
    streams = [tuple(visits) for part in (task.train, task.valid, task.test) for _, visits in part]
    assert len(set(streams)) == len(streams) == QUICK.visitors


@pytest.mark.parametrize("make", [make_digits, make_habits])
def test_the_seed_decides_everything(make: Any) -> None:
    a, b, c = (make(QUICK, seed) for seed in (5, 5, 6))
    for p, q in zip(a.model.parameters(), b.model.parameters(), strict=True):
        assert torch.equal(p, q)
    assert [labels for _, labels in a.test] == [labels for _, labels in b.test]
    assert [labels for _, labels in a.test] != [labels for _, labels in c.test]


def test_making_a_model_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    with seeded(3):
        torch.rand(3)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.fixture(scope="module")
def untestable() -> Task:
    """A task whose test users are not there: whatever looks at them fails."""
    return replace(make_digits(QUICK, seed=0), test=())


@pytest.mark.parametrize("name", ["static", "ncm", "sgd-head", "counter"])
def test_baselines_are_chosen_without_the_test_users(untestable: Task, name: str) -> None:
    method, settings = chosen_baseline(name, untestable, replace(QUICK, trials=6))
    assert set(settings) == set(GRIDS[name])
    for option, value in settings.items():
        assert value in GRIDS[name][option]
        assert getattr(method.options, option) == value


def test_the_best_setting_is_the_best_that_was_tried(untestable: Task) -> None:
    def loss(method: Any) -> float:
        done = evaluate(method, untestable.valid, show=False)
        return done.result().metrics["log_perplexity"]

    size = replace(QUICK, trials=100)
    method, settings = chosen_baseline("sgd-head", untestable, size)
    for name, values in GRIDS["sgd-head"].items():  # no single step along the grid does better
        at = list(values).index(settings[name])
        for other in (*values[max(0, at - 1) : at], *values[at + 1 : at + 2]):
            assert loss(method) <= loss(method.variant(**{name: other}))


def test_adapters_are_chosen_without_the_test_users(untestable: Task) -> None:
    fixed, lmn = chosen_adapters(untestable, QUICK, seed=0)
    assert (fixed.name, lmn.name) == ("lmn-fixed", "lmn")
    assert fixed.memory == lmn.memory
