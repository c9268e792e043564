from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from render.html_checks import check_page

from labelmem.demo.digits import make_digits
from labelmem.demo.report import METHOD_NAMES, as_plain, page_of, table_of, verdict
from labelmem.demo.run import TaskResult, chosen_adapters, explain_one
from labelmem.demo.task import Size
from labelmem.evaluation import Watch, evaluate

Results = list[TaskResult]


def test_all_methods_of_both_tasks(results: Results) -> None:
    assert [list(done.methods) for done in results] == [
        ["static", "ncm", "sgd-head", "lmn-fixed", "lmn"],
        ["static", "counter", "sgd-head", "lmn-fixed", "lmn"],
    ]


def test_curves_agree_with_the_figures(results: Results) -> None:
    for done in results:
        for method in done.methods.values():
            hits = sum(part.accuracy * part.tokens for part in method.curve)
            assert hits / method.result.tokens == pytest.approx(method.result.metrics["accuracy"])


def test_a_model_alone_never_names_a_new_label(results: Results) -> None:
    assert all(done.methods["static"].result.metrics["accuracy_new"] == 0 for done in results)


def test_a_new_label_that_is_right_is_explained() -> None:
    task = make_digits(Size.quick(), seed=3)
    _, lmn = chosen_adapters(task, Size.quick(), seed=3)
    hits: list[tuple[int, int]] = []

    def watch(seen: Watch) -> None:
        right = (seen.probs.argmax(1) == seen.y) & (seen.y >= task.labels) & seen.mask
        hits.extend((seen.order[row], seen.t) for row in right.nonzero()[:, 0].tolist())

    evaluate(lmn, task.test, watch=watch)
    late = [(user, t) for user, t in hits if t >= len(task.test[user][1]) // 2]
    assert late, "nothing to explain: choose another seed"
    user, t = min(late)
    seen = explain_one(lmn, task)
    inputs, labels = task.test[user]
    assert seen.step == t + 1
    assert seen.explanation.label == seen.truth == labels[t]
    assert np.array_equal(np.ravel(seen.picture), inputs[t].numpy())
    assert sum(cell.share for cell in seen.explanation) <= 1 + 1e-5


def test_pictures_are_explained_and_nothing_else(results: Results) -> None:
    assert [done.explained is not None for done in results] == [True, False]


def test_plain_figures_survive_json(results: Results) -> None:
    for done in results:
        plain = as_plain(done)
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        lmn = plain["methods"][-1]
        assert lmn["metrics"]["mrr"] == done.methods["lmn"].result.metrics["mrr"]


def test_the_page_is_sound_and_self_contained(results: Results) -> None:
    check_page(page_of(results, seed=3, quick=True).render())


def test_the_tables_of_the_page_equal_the_figures(results: Results) -> None:
    html = page_of(results, seed=3, quick=True).render()
    for done in results:
        start = html.index(f">{table_of(done).caption}<")
        table = html[html.rindex("<table>", 0, start) : start]
        for name, method in done.methods.items():
            row = re.search(rf"<tr><th [^>]*>{METHOD_NAMES[name][0]}</th>.*", table)
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
    assert html.count("<strong>Accuracy along the stream") == len(results)
    assert "One prediction, explained" in html and html.count('class="pixels"') == 1
    assert "with seed 3" in html and "quick run" in html
    assert "quick run" not in page_of(results, seed=3, quick=False).render()


def test_the_verdict_says_the_figures(results: Results) -> None:
    for done in results:
        lmn, static = done.methods["lmn"].result, done.methods["static"].result
        for word, sentence in zip(("new", "seen"), verdict(done), strict=False):
            ours, theirs = (one.metrics[f"accuracy_{word}"] for one in (lmn, static))
            low, high = lmn.interval[f"accuracy_{word}"]
            assert f"On {word} labels LMN is right {ours:.1%} of the time" in sentence
            assert f"{low:.1%} to {high:.1%}" in sentence
            assert f"the model alone {theirs:.1%}" in sentence


def test_the_verdict_names_who_is_ahead(results: Results) -> None:
    def with_mrr(done: TaskResult, mrr: float) -> str:
        lmn = done.methods["lmn"]
        result = replace(lmn.result, metrics=lmn.result.metrics | {"mrr": mrr})
        methods = {**done.methods, "lmn": replace(lmn, result=result)}
        return verdict(replace(done, methods=methods))[-1]

    assert "ahead of the best of the others" in with_mrr(results[0], 1.0)
    assert "behind or level" in with_mrr(results[0], 0.0)
