"""Figures of a form against loops over its steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from labelmem_paper.experiments.adapt.form_figures import form_figures
from labelmem_paper.experiments.adapt.meeting import Answers, Met

KNOWN = 4


def made(lengths: list[int], labels: int = 7, seed: int = 0) -> list[Met]:
    rng = np.random.default_rng(seed)

    def answers(steps: int, share: float) -> Answers:
        return Answers.of(rng.random(steps), (rng.random(steps) < share).tolist())

    return [
        Met(rng.integers(labels, size=steps), answers(steps, 0.7), answers(steps, 0.4))
        for steps in lengths
    ]


def slowly(met: list[Met]) -> dict[str, float]:
    """Every figure by going through all steps one by one."""
    kept: dict[str, list[float]] = {}
    for one in met:
        for t, truth in enumerate(one.truth.tolist()):
            old = truth < KNOWN
            parts = ["", "_known" if old else "_new"]
            parts += ["_known_300"] if old and t < 300 else []
            parts += ["_late"] if t >= len(one.truth) // 2 else []
            for who, said in (("", one.method), ("model_", one.model)):
                kept.setdefault(f"{who}log_loss", []).append(float(said.loss[t]))
                for part in parts:
                    kept.setdefault(f"{who}accuracy{part}", []).append(float(said.hit[t]))
            for part in parts:
                if part.startswith("_known"):
                    gain = float(one.method.hit[t]) - float(one.model.hit[t])
                    kept.setdefault(f"gain{part}", []).append(gain)
    return {name: sum(values) / len(values) for name, values in kept.items()}


@pytest.mark.parametrize("lengths", [[700], [90] * 8, [5, 17]])
def test_figures_are_those_of_the_steps(lengths: list[int]) -> None:
    met = made(lengths)
    metrics, intervals = form_figures(met, KNOWN)
    expected = slowly(met)
    assert metrics.keys() == intervals.keys() == expected.keys()
    for name, value in metrics.items():
        assert value == pytest.approx(expected[name], abs=1e-5), name
    gain = metrics["accuracy_known"] - metrics["model_accuracy_known"]
    assert metrics["gain_known"] == pytest.approx(gain, abs=2e-6)


@pytest.mark.parametrize(("lengths", "has"), [([700], True), ([90] * 8, True), ([5, 17], False)])
def test_intervals_where_there_is_enough_to_draw(lengths: list[int], has: bool) -> None:
    metrics, intervals = form_figures(made(lengths), KNOWN)
    for name, bounds in intervals.items():
        assert (bounds is not None) == has, name
        if bounds is not None:
            assert bounds[0] <= metrics[name] <= bounds[1], name
            assert bounds[0] < bounds[1], name


def test_users_are_drawn_whole() -> None:
    """Users who are all alike leave nothing uncertain, however unlike their steps are."""
    (one,) = made([90])
    _, intervals = form_figures([one] * 8, KNOWN)
    low, high = intervals["accuracy"] or (0.0, 1.0)
    assert low == high


def test_what_no_step_counts_for_is_left_out() -> None:
    metrics, _ = form_figures(made([40], labels=KNOWN), KNOWN)
    assert "accuracy_known" in metrics
    assert not [name for name in metrics if name.endswith("_new")]


def test_losses_have_a_floor() -> None:
    answers = Answers.of([0.0, 1.0], [False, True])
    metrics, _ = form_figures([Met(np.array([0, 1]), answers, answers)], KNOWN)
    assert metrics["log_loss"] == pytest.approx(-math.log(1e-10) / 2, abs=1e-5)
