"""Running text: data, dynamic evaluation, and runs from the table to the record."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from labelmem_paper.experiments.kinds import contender
from labelmem_paper.experiments.language import dynamic
from labelmem_paper.experiments.language import task as task_module
from labelmem_paper.experiments.language.dynamic import DynamicEvaluation, mean_squares
from labelmem_paper.experiments.language.fit_recall import fit_recall
from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.experiments.language.method import Beside
from labelmem_paper.experiments.language.methods import lmn
from labelmem_paper.experiments.language.stories import load_text, made_up
from labelmem_paper.experiments.language.task import LanguageTask
from labelmem_paper.experiments.records import Record, Records
from labelmem_paper.experiments.runner import execute
from labelmem_paper.experiments.table import Run, load_table
from labelmem_paper.methods.fit_text import side_by_side, text_loss
from labelmem_paper.methods.pointer_lstm import PointerLSTM
from labelmem_paper.methods.text_lstm import TextLSTM
from toys import filled

from labelmem.errors import ConfigError

WORDS, DIM = 8, 5


def smoke(method: str = "static", **changes: Any) -> Run:
    (run,) = load_table("table5").runs("smoke", methods=[method])
    return replace(run, config={**run.config, **changes})


def task(folder: Path, method: str = "static", **changes: Any) -> LanguageTask:
    return LanguageTask(smoke(method, **changes), torch.device("cpu"), folder, show=False)


def model() -> TextLSTM:
    made = filled(TextLSTM(WORDS, dim=DIM), 2).eval()
    return made.requires_grad_(False)  # type: ignore[no-any-return]


def text(length: int) -> torch.Tensor:
    return torch.randint(WORDS, (length,), generator=torch.Generator().manual_seed(4))


def record(folder: Path, run: Run) -> Record:
    assert execute(run, folder, "cpu", show=False) == "recorded"
    return next(one for one in Records(folder / "table5.jsonl") if one["method"] == run.method)


def test_stories_repeat_their_own_names() -> None:
    data = made_up(words=60, length=3000, held_out=500)
    assert np.array_equal(data.train, made_up(words=60, length=3000, held_out=500).train)
    assert data.labels == 60 and len(data.valid) == len(data.test) == 500
    names = [word for word in data.words(data.train[:80]) if word.startswith("name")]
    assert len(set(names)) <= 6 < len(names)  # of one story, or two
    assert load_text(smoke()).name == "stories"
    with pytest.raises(ConfigError, match="synthetic holds no running text"):
        load_text(replace(smoke(), dataset="synthetic"))


def test_a_step_of_dynamic_evaluation_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    words, opening = text(7), 0
    squares = [torch.rand_like(p) for p in model().parameters()]
    method = DynamicEvaluation(model(), squares, opening, lr=0.1, pull=0.3, segment=4, floor=0.5)
    (answer,) = method.read(words, 1)
    slow = model().requires_grad_(True)
    first = [p.detach().clone() for p in slow.parameters()]
    rms = [one.sqrt() for one in squares]
    mean = torch.cat([one.flatten() for one in rms]).mean()
    x, y = side_by_side(words, 1, opening)
    state = slow.initial_state(1)
    for part in (slice(0, 4), slice(4, 7)):
        h, new = slow.forward_sequence(x[:, part], state)
        log_r = torch.log_softmax(slow.head(h), 2)
        torch.testing.assert_close(answer.log_r[:, part], log_r.detach())
        loss = torch.nn.functional.nll_loss(log_r[0], y[0, part])
        slopes = torch.autograd.grad(loss, list(slow.parameters()))
        state = new[0].detach(), new[1].detach()
        with torch.no_grad():
            for p, p0, slope, one in zip(slow.parameters(), first, slopes, rms, strict=True):
                pull = torch.clamp(0.3 * one / mean, max=1.0)
                p += pull * (p0 - p) - 0.1 * slope / (one + 0.5 * mean)
    (again,) = method.read(words, 1)  # the model itself has not moved
    assert torch.equal(again.log_r, answer.log_r)
    monkeypatch.setattr(dynamic, "AT_ONCE", 2)
    parts = list(method.read(words, 1))
    assert [one.y.tolist() for one in parts] == [[words[:4].tolist()], [words[4:].tolist()]]
    assert torch.equal(torch.cat([one.log_r for one in parts], 1), answer.log_r)
    with pytest.raises(ConfigError, match="streams is 2"):
        next(method.read(words, 2))


def test_mean_squares_by_hand() -> None:
    words = text(12)
    found = mean_squares(model(), words, 0, batches=2, segment=3, streams=2)
    slow = model().requires_grad_(True)
    x, y = side_by_side(words, 2, 0)
    carried, sums = None, [torch.zeros_like(p) for p in slow.parameters()]
    for part in (slice(0, 3), slice(3, 6)):
        loss, carried = slow.passage_loss(x[:, part], y[:, part], carried, half=False)
        for total, slope in zip(
            sums, torch.autograd.grad(loss, list(slow.parameters())), strict=True
        ):
            total += slope**2
    for one, total in zip(found, sums, strict=True):
        torch.testing.assert_close(one, total / 2)


def test_learning_while_being_tested_helps() -> None:
    words = torch.tensor([1, 2, 3, 4]).repeat(40)
    squares = mean_squares(model(), words, 0, batches=4, segment=5, streams=2)
    losses = {}
    for lr in (0.0, 0.01):
        method = DynamicEvaluation(model(), squares, 0, lr=lr, pull=0.001)
        losses[lr] = sum(float(one.nats().sum()) for one in method.read(words, 1))
    assert losses[0.01] < 0.8 * losses[0.0]


def test_all_of_the_test_text_counts_whatever_the_pieces(tmp_path: Path) -> None:
    alone, parts = (task(tmp_path, words={"test": 290}, streams=n) for n in (1, 4))
    method = Beside(alone.model(), alone.opening)
    one, four = alone.tested(method), parts.tested(method)
    assert one["tokens"] == 290 and four["tokens"] == 288
    assert (one["streams"], four["streams"]) == (1, 4) and len(one["blocks"]["tokens"]) == 10
    assert sum(one["blocks"]["tokens"]) == 290
    low, high = one["interval"]["perplexity"]
    assert low < one["metrics"]["perplexity"] < high
    assert one["metrics"]["perplexity"] == pytest.approx(math.exp(one["metrics"]["log_perplexity"]))
    slow = [answer.nats() for answer in method.read(alone.test, 1)]
    assert one["metrics"]["log_perplexity"] == pytest.approx(float(torch.cat(slow, 1).mean()))


def test_the_model_of_a_run_is_trained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = task(tmp_path).model()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(task_module, "fit_text", never)
    again = task(tmp_path).model()
    assert all(map(torch.equal, first.parameters(), again.parameters()))
    with pytest.raises(AssertionError, match="trained again"):
        task(tmp_path, "static-stronger").model()
    with pytest.raises(ConfigError, match="'tree'"):
        task(tmp_path).model(kind="tree")


def test_a_memory_needs_a_size(tmp_path: Path) -> None:
    run = smoke("neural-cache", options={})
    made = contender("neural-cache", kind="language")(task(tmp_path))
    with pytest.raises(ConfigError, match=r"expected memory\.capacity"):
        made.loss({"flat": 0.1, "weight": 0.1})
    assert run.config["options"] == {}


def test_a_pointer_row_has_a_training_of_its_own_and_reads_as_it_was_trained(
    tmp_path: Path,
) -> None:
    said = {"memory": {"capacity": 7}, "training": {"scale": 0.9, "dim": 6, "epochs": 1}}
    row = task(tmp_path, "pointer", options=said)
    method = contender("pointer", kind="language")(row).build({})
    (pointer,) = method.modules
    assert isinstance(pointer, PointerLSTM)
    assert (pointer.window, pointer.scale, pointer.dim) == (7, 0.9, 6)
    nats = torch.cat([answer.nats() for answer in method.read(row.valid, 2)], 1)
    assert float(nats.mean()) == pytest.approx(text_loss(pointer, row.valid, row.opening, 2))


def test_lmn_goes_on_where_it_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = smoke("lmn")
    whole = record(tmp_path / "whole", run)
    calls = []

    def killed(*args: Any, **kwargs: Any) -> list[float]:
        calls.append(1)
        if len(calls) == 4:  # after the search and the first of two trainings
            raise KeyboardInterrupt
        return fit_recall(*args, **kwargs)

    monkeypatch.setattr(lmn, "fit_recall", killed)
    with pytest.raises(KeyboardInterrupt):
        execute(run, tmp_path / "half", "cpu", show=False)
    again = record(tmp_path / "half", run)
    assert again["metrics"] == pytest.approx(whole["metrics"])
    assert again["chosen"] == whole["chosen"]
    assert not list((tmp_path / "half").rglob("*.first"))


def test_a_record_tells_where_the_time_went(tmp_path: Path) -> None:
    found = record(tmp_path, smoke("lmn-fixed"))
    for name in ("us_model", "us_memory", "us_softmax"):
        assert found[name] > 0
    assert found["us_per_token"] == pytest.approx(found["us_model"] + found["us_memory"], abs=0.03)
    assert "capacity" in json.dumps(found["config"]["options"]["memory"])
    silent = Laps()
    with silent.part("model"):
        pass
    assert not silent.seconds


def test_rows_of_a_curve_differ_in_their_size_only() -> None:
    table = load_table("table5")
    for dataset in table.datasets:
        for base in ("neural-cache", "lmn-fixed", "lmn"):
            runs = {run.method: run for run in table.runs(datasets=[dataset], seeds=[0])}
            sizes = {
                run.config["options"]["memory"]["capacity"]
                for run in runs.values()
                if run.method == base or run.method.removeprefix(f"{base}-").isdigit()
            }
            assert sizes == {50, 100, 200, 500, 1000, 2000, 5000}
