"""What a record keeps, and that a table may cut streams to see that everything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from experiments.adapt.toy_task import toy_task
from labelmem_paper.experiments.adapt import task as module
from labelmem_paper.experiments.adapt.form_figures import form_figures
from labelmem_paper.experiments.adapt.forms import FORMS
from labelmem_paper.experiments.adapt.meeting import meet
from labelmem_paper.experiments.adapt.task import AdaptTask
from labelmem_paper.experiments.adapt.tasks import TASKS
from labelmem_paper.experiments.table import load_table

from labelmem.baselines import make


def toy(folder: Path, monkeypatch: pytest.MonkeyPatch, **config: object) -> AdaptTask:
    (run,) = load_table("adapt").runs("smoke", methods=["static"])
    monkeypatch.setattr(module, "TASKS", {"digits": lambda seed, cache: toy_task(seed)})
    return AdaptTask(replace(run, config={"options": {}, **config}), torch.device("cpu"), folder)


def test_a_record_has_the_figures_of_all_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = toy(tmp_path, monkeypatch)
    method = make("ncm", task.frozen.head())
    record = task.tested(method)
    assert record["interval"].keys() == record["metrics"].keys()
    for form in FORMS:
        expected, _ = form_figures(meet(method, task.frozen, task.frozen.streams[form]), 6)
        assert record["metrics"][f"{form}.ms"] > 0
        for name, value in expected.items():
            assert record["metrics"][f"{form}.{name}"] == value
    assert record["streams"] == 20
    assert record["tokens"] == sum(len(s) for of in task.frozen.streams.values() for s in of)


def test_streams_may_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy(tmp_path, monkeypatch, cut=12, users=3)
    lengths = {form: [len(s) for s in of] for form, of in task.frozen.streams.items()}
    assert lengths["few"] == [12] * 3 and lengths["new"] == [12]
    assert torch.equal(task.frozen.streams["new"][0].h, toy_task().streams["new"][0].h[:12])


def test_rehearsals_differ_and_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy(tmp_path, monkeypatch)
    weights = [task.rehearsal(i).weight for i in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert task.first_rehearsal is task.first_rehearsal


def test_a_rehearsal_tells_good_methods_from_bad_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = toy(tmp_path, monkeypatch)
    rehearsal = task.first_rehearsal
    adapts, rests = (make(name, rehearsal.head()) for name in ("sgd-head", "static"))
    assert task.rehearsed(adapts) < task.rehearsed(rests)


def test_every_task_says_where_its_examples_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = toy(tmp_path, monkeypatch)
    for name in TASKS:
        source = replace(task, run=replace(task.run, dataset=name)).data.source
        assert source.form in ("raw", "compact", "generated")
