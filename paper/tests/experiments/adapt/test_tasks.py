"""Tasks that take less than seconds and need nothing but what the tests have anyway."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from labelmem_paper.experiments.adapt.forms import FORMS
from labelmem_paper.experiments.adapt.frozen import FrozenTask, Stream
from labelmem_paper.experiments.adapt.tasks import TASKS

from labelmem.errors import MissingExtraError

NEEDS = {"digits": "sklearn", "segments": "river"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", params=NEEDS)
def task(request: pytest.FixtureRequest, cache: Path) -> FrozenTask:
    pytest.importorskip(NEEDS[request.param])
    return TASKS[request.param](0, cache)


def accuracy(task: FrozenTask, stream: Stream) -> float:
    logits = torch.nn.functional.linear(stream.h, task.weight, task.bias)
    return float((logits.argmax(1) == stream.truth).float().mean())


def test_the_head_is_good_at_what_it_knows(task: FrozenTask) -> None:
    trained = Stream(task.train_h, task.train_y, task.train_y)
    assert accuracy(task, trained) > 0.9
    assert accuracy(task, task.streams["known"][0]) > 0.85


def test_the_parts_fit_together(task: FrozenTask) -> None:
    labels, dim = task.weight.shape
    assert task.labels == labels and task.train_h.shape == (len(task.train_y), dim)
    assert sorted(set(task.train_y.tolist())) == list(range(labels))
    assert list(task.streams) == list(FORMS)
    for streams in task.streams.values():
        for stream in streams:
            assert stream.h.shape == (len(stream), dim) and stream.h.dtype == torch.float32


def test_the_same_seed_gives_the_same_task(task: FrozenTask, tmp_path: Path) -> None:
    again, other = (TASKS[task.name](seed, tmp_path) for seed in (0, 1))
    assert torch.equal(task.weight, again.weight)
    assert torch.equal(task.streams["noisy"][0].h, again.streams["noisy"][0].h)
    assert torch.equal(task.streams["noisy"][0].y, again.streams["noisy"][0].y)
    assert not torch.equal(task.weight, other.weight)


def test_a_missing_package_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river.datasets", None)
    with pytest.raises(MissingExtraError, match=r"needs river.*labelmem-paper\[adapt\]"):
        TASKS["segments"](0, cache)
