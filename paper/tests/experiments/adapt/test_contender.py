"""Every method of the table around a toy: made of training examples, chosen in rehearsals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from experiments.adapt.toy_task import toy_task
from labelmem_paper.experiments.adapt import task as module
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.task import AdaptTask
from labelmem_paper.experiments.kinds import contender
from labelmem_paper.experiments.table import load_table

TABLE = load_table("adapt")
SMOKE = {k: v for k, v in TABLE.sizes["smoke"].items() if k not in ("datasets", "methods", "seeds")}


def toy(folder: Path, monkeypatch: pytest.MonkeyPatch, made: FrozenTask) -> AdaptTask:
    (run,) = TABLE.runs("smoke", methods=["static"])
    monkeypatch.setattr(module, "TASKS", {"digits": lambda seed, cache: made})
    config = {**SMOKE, "rehearsal": {"streams": 1, "steps": 20}, "options": {}}
    return AdaptTask(replace(run, config=config), torch.device("cpu"), folder, show=False)


def ready(task: AdaptTask, name: str) -> Any:
    """A method with the options it has before it searches, after it has tried some."""
    made = contender(name, kind="adapt")(task)
    for option, values in made.grid.items():
        assert made.start[option] in values
    assert made.loss(dict(made.start)) >= 0
    return made.finish(dict(made.start), task.work)


@pytest.mark.parametrize("name", TABLE.methods)
def test_every_method_is_made_without_a_look_at_the_streams(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = toy_task()
    nothing = {"new": [stream.part(0, 1) for stream in whole.streams["new"]]}
    probs = []
    for i, made in enumerate((whole, replace(whole, streams=nothing))):
        (tmp_path / str(i)).mkdir()
        method = ready(toy(tmp_path / str(i), monkeypatch, made), name)
        probs.append(method.stream().predict(whole.streams["new"][0].h[0]).probs)
    torch.testing.assert_close(*probs)


def test_only_the_primed_adapter_uses_the_training_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = toy_task()
    strange = replace(whole, train_h=-whole.train_h)
    (shown,) = whole.streams["known"]
    same = {}
    for name in ("lmn-fixed", "default", "default-primed"):
        said = []
        for made in (whole, strange):
            stream = ready(toy(tmp_path, monkeypatch, made), name).stream()
            for h, y in zip(shown.h[:5], shown.y[:5].tolist(), strict=True):
                last = stream.predict(h).probs
                stream.observe(y)
            said.append(last)
        same[name] = torch.equal(*said)
    assert same == {"lmn-fixed": True, "default": True, "default-primed": False}


@pytest.mark.parametrize("name", ["ncm", "slda", "knn"])
def test_the_training_examples_are_known(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = toy(tmp_path, monkeypatch, toy_task())
    stream = ready(task, name).stream()
    said = [stream.predict(h).label for h in task.frozen.train_h]
    assert sum(a == b for a, b in zip(said, task.frozen.train_y.tolist(), strict=True)) > 50


def test_options_do_not_depend_on_the_size_of_h(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = toy(tmp_path, monkeypatch, toy_task())
    frozen = task.frozen
    larger = replace(frozen, weight=frozen.weight / 9, train_h=9 * frozen.train_h)
    h, y = frozen.streams["known"][0].h[:20], frozen.streams["known"][0].y[:20].tolist()
    for name, point in (("ncm", {"metric": "euclidean"}), ("sgd-head", {"rate": 0.3})):
        made = contender(name, kind="adapt")(task)
        both = [made.build({**made.start, **point}, one).stream() for one in (frozen, larger)]
        for x, label in zip(h, y, strict=True):
            one, other = (s.predict(k * x).probs for s, k in zip(both, (1, 9), strict=True))
            # The bias has no size; its step is smaller where h is larger.
            torch.testing.assert_close(one, other, atol=0.02, rtol=0)
            for stream in both:
                stream.observe(label)


def test_lmn_learns_its_combiner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy(tmp_path, monkeypatch, toy_task())
    made = ready(task, "lmn")
    assert made.name == "lmn" and (tmp_path / "combiner.safetensors").exists()
    assert made.backbone.head.out_features == task.frozen.labels
