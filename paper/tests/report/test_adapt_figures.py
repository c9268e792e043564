"""Means and worst figures over tasks, against loops over made-up records."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelmem_paper.report.adapt_figures import TaskFigures
from report.made_up_adapt import adapt_results, figure, ran


def test_means_are_those_of_the_records(tmp_path: Path) -> None:
    figures = TaskFigures(adapt_results(tmp_path, [ran("ncm", t, s) for t in "ab" for s in (0, 1)]))
    assert figures.tasks == ["a", "b"] and figures.apart == []
    expected = [figure("ncm", t, s, "new.accuracy") for t in "ab" for s in (0, 1)]
    assert figures.mean("ncm", ["new.accuracy"], ["a", "b"]) == pytest.approx(sum(expected) / 4)
    (estimate,) = [figures.of("ncm", "a", "new.accuracy")]
    assert estimate is not None and estimate.value == pytest.approx(sum(expected[:2]) / 2)


def test_several_forms_weigh_alike(tmp_path: Path) -> None:
    runs = [ran("ncm", "a"), ran("ncm", "b", forms=["new"])]
    figures = TaskFigures(adapt_results(tmp_path, runs))
    new = [figure("ncm", task, 0, "new.log_loss") for task in "ab"]
    few = figure("ncm", "a", 0, "few.log_loss")
    names = ["new.log_loss", "few.log_loss"]
    found = figures.mean("ncm", names, figures.tasks)
    assert found == pytest.approx((sum(new) / 2 + few) / 2)


def test_no_mean_over_fewer_tasks_than_others_have(tmp_path: Path) -> None:
    runs = [ran("ncm", "a"), ran("ncm", "b"), ran("slda", "a")]
    figures = TaskFigures(adapt_results(tmp_path, runs))
    assert figures.mean("ncm", ["new.accuracy"], figures.tasks) is not None
    assert figures.mean("slda", ["new.accuracy"], figures.tasks) is None
    assert figures.worst("slda", ["new.gain_known"], figures.tasks) is None
    assert figures.mean("slda", ["new.accuracy"], ["a"]) is not None
    assert figures.mean("slda", ["none.accuracy"], ["a"]) is None


def test_the_worst_says_where_it_was_found(tmp_path: Path) -> None:
    low = ran("ncm", "b", metrics={"few.gain_known": -0.3})
    figures = TaskFigures(adapt_results(tmp_path, [ran("ncm", "a"), low]))
    names = ["new.gain_known", "few.gain_known", "none.gain_known"]
    worst = figures.worst("ncm", names, figures.tasks)
    assert worst is not None and tuple(worst) == (pytest.approx(-0.3), "b", "few")


def test_seeds_are_those_that_all_tasks_have(tmp_path: Path) -> None:
    runs = [ran("ncm", "a", 0), ran("ncm", "a", 1), ran("ncm", "b", 1)]
    figures = TaskFigures(adapt_results(tmp_path, runs))
    assert figures.seeds("ncm") == [1] and figures.seeds("slda") == []


def test_tasks_that_are_kept_apart(tmp_path: Path) -> None:
    runs = [ran("ncm", task) for task in ("digits", "letters")]
    figures = TaskFigures(adapt_results(tmp_path, runs))
    assert (figures.tasks, figures.apart) == (["digits"], ["letters"])
