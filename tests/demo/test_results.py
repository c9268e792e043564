from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from render.html_checks import check_page

from labelmem.demo import sentences as say
from labelmem.demo.page import page_of
from labelmem.demo.rows import as_plain, table_of
from labelmem.demo.run import TITLES, TaskResult

Results = list[TaskResult]


def test_all_methods_of_both_tasks(results: Results) -> None:
    names = [[method.name for method in done.methods] for done in results]
    assert names == [
        ["static", "ncm", "sgd-head", "lmn-fixed", "lmn"],
        ["static", "counter", "sgd-head", "lmn-fixed", "lmn"],
    ]


def test_traces_agree_with_the_figures(results: Results) -> None:
    for done in results:
        for method in done.methods:
            trace, figures = method.trace, method.result.metrics
            assert (~np.isnan(trace.hit)).sum() == method.result.tokens
            assert np.nanmean(trace.hit) == pytest.approx(figures["accuracy"])
            for new, key in ((1, "accuracy_new"), (0, "accuracy_seen")):
                assert trace.hit[trace.new == new].mean() == pytest.approx(figures[key])


def test_traces_hold_the_true_labels(results: Results) -> None:
    for done in results:
        for (_, labels), new in zip(done.task.test, done["lmn"].trace.new, strict=True):
            expected = [float(label >= done.task.labels) for label in labels]
            assert new[: len(labels)].tolist() == expected
            assert np.isnan(new[len(labels) :]).all()


def test_a_model_alone_never_names_a_new_label(results: Results) -> None:
    assert all(done["static"].result.metrics["accuracy_new"] == 0 for done in results)


def test_the_explained_prediction_is_the_one_that_was_scored(results: Results) -> None:
    done = results[0]
    seen = done.explained
    assert seen is not None
    trace = done["lmn"].trace
    right = (trace.hit == 1) & (trace.new == 1)
    right[:, : trace.hit.shape[1] // 2] = False
    if right.any():
        user, step = np.argwhere(right)[0]
        assert seen.step == step + 1
        assert seen.explanation.label == seen.truth == done.task.test[user][1][step]
        assert np.array_equal(seen.picture.ravel(), done.task.test[user][0][step].numpy())
    assert sum(cell.share for cell in seen.explanation) <= 1 + 1e-5
    assert seen.model_label < done.task.labels and 0 < seen.model_probability <= 1


def test_plain_figures_survive_json(results: Results) -> None:
    for done in results:
        plain = as_plain(done)
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        lmn = plain["methods"][-1]
        assert lmn["metrics"]["mrr"] == done["lmn"].result.metrics["mrr"]


def test_the_page_is_sound_and_self_contained(results: Results) -> None:
    check_page(page_of(results, seed=3, quick=True).render())


def test_the_tables_of_the_page_equal_the_figures(results: Results) -> None:
    html = page_of(results, seed=3, quick=True).render()
    for done in results:
        start = html.index(f">{table_of(done).caption}<")
        table = html[html.rindex("<table>", 0, start) : start]
        for method in done.methods:
            row = re.search(rf"<tr><th [^>]*>{TITLES[method.name]}</th>.*", table)
            assert row is not None
            cells = re.findall(r"<td[^>]*>(?:<strong>)?([\d.]+%?)", row[0])
            figures = method.result.metrics
            assert cells == [
                f"{figures['accuracy_new']:.1%}",
                f"{figures['accuracy_seen']:.1%}",
                f"{figures['accuracy']:.1%}",
                f"{figures['log_perplexity']:.3f}",
                f"{figures['mrr']:.3f}",
                f"{method.us_per_step:.0f}",
            ]


def test_the_page_says_what_it_shows(results: Results) -> None:
    html = page_of(results, seed=3, quick=True).render()
    for said in ("Accuracy along the stream", "What each example of a new label is worth"):
        assert html.count(f"<strong>{said}") == len(results)
    assert "One prediction, explained" in html and html.count('class="pixels"') == 1
    assert "with seed 3" in html and "quick run" in html
    assert "quick run" not in page_of(results, seed=3, quick=False).render()


def _with_hits(done: TaskResult, name: str, value: float) -> TaskResult:
    """The same, had a method always been right or always wrong."""
    changed = []
    for method in done.methods:
        if method.name == name:
            trace = deepcopy(method.trace)
            trace.hit[~np.isnan(trace.hit)] = value
            figures = method.result.metrics
            figures = figures | {key: value for key in figures if key.startswith("accuracy")}
            result = replace(method.result, metrics=figures)
            method = replace(method, trace=trace, result=result)
        changed.append(method)
    return replace(done, methods=tuple(changed))


@pytest.mark.parametrize(
    ("hits", "words"),
    [((1.0, 0.0), "a clear gain"), ((0.0, 1.0), "a clear loss"), ((1.0, 1.0), "no clear change")],
)
def test_the_verdict_follows_the_figures(results: Results, hits: Any, words: str) -> None:
    done = _with_hits(_with_hits(results[0], "lmn", hits[0]), "static", hits[1])
    said = say.verdict(done)
    assert all(words in sentence for sentence in said[:2])
    assert f"LMN is right {hits[0]:.1%} of the time, the model alone {hits[1]:.1%}" in said[1]


def test_the_verdict_names_who_is_ahead(results: Results) -> None:
    def with_mrr(done: TaskResult, mrr: float) -> str:
        lmn = done["lmn"]
        result = replace(lmn.result, metrics=lmn.result.metrics | {"mrr": mrr})
        methods = (*done.methods[:-1], replace(lmn, result=result))
        return say.verdict(replace(done, methods=methods))[-1]

    assert "ahead of the best of the others" in with_mrr(results[0], 1.0)
    assert "behind or level" in with_mrr(results[0], 0.0)
