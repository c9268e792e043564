"""Each check is worth having: it catches a method that is broken in just that way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelmem.baselines.counter import Counter
from labelmem.baselines.knn import KNN
from labelmem.checks import Trial, check_method, checks_for, run_check
from labelmem.errors import ObserveError
from labelmem.labels import LabelSpace
from labelmem.online import OnlineMethod, Step
from labelmem.stream import Prediction, Stream
from labelmem.trees import tree_map

LABELS = ["ant", "bee", "cat"]


class ImpurePredict(Counter):
    def advance(self, state: Any, x: Any, width: int) -> Step:
        step = super().advance(state, x, width)
        state.count = 0.9 * state.count + 0.1
        return step


class SharedState(Counter):
    shared: Any = None

    def initial_state(self, streams: int) -> Any:
        if self.shared is None or self.shared.streams != streams:
            self.shared = super().initial_state(streams)
        return self.shared


class SortedLabels(Counter):
    class Space(LabelSpace):
        def names(self, width: int) -> list[Any]:
            known = len(self.known)
            names = super().names(width)
            return names[:known] + sorted(names[known:], reverse=True)

    def stream(self) -> Stream:
        stream = super().stream()
        stream.space = self.Space(self.known)
        return stream


class Unnormalised(Counter):
    def advance(self, state: Any, x: Any, width: int) -> Step:
        step = super().advance(state, x, width)
        return replace(step, probs=0.9 * step.probs)


class Negative(Counter):
    def advance(self, state: Any, x: Any, width: int) -> Step:
        step = super().advance(state, x, width)
        shift = torch.zeros_like(step.probs)
        shift[:, 0], shift[:, 1] = 1.0, -1.0
        return replace(step, probs=step.probs + shift)


class MaskIgnored(Counter):
    def commit(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        super().commit(state, step, y, None)


class MixesStreams(Counter):
    def advance(self, state: Any, x: Any, width: int) -> Step:
        step = super().advance(state, x, width)
        return replace(step, probs=(step.probs + step.probs.mean(dim=0)) / 2)


class LeakyPadding(Counter):
    def advance(self, state: Any, x: Any, width: int) -> Step:
        step = super().advance(state, x, width)
        return replace(step, probs=0.9 * step.probs + 0.1 / width)


class Amnesiac(Counter):
    def restore(self, tensors: dict[str, Tensor], streams: int) -> Any:
        return self.initial_state(streams)


class Unrepeatable(Counter):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counts = torch.rand(len(self.known), dtype=torch.float64)


class Resurrecting(Counter):
    """Keeps what it learned on itself, so that neither a reset nor another stream is new."""

    def commit(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        super().commit(state, step, y, mask)
        self.counts[0] += 1


class Rewriting(Counter):
    """Hands out a buffer that it goes on writing to."""

    def advance(self, state: Any, x: Any, width: int) -> Step:
        step = super().advance(state, x, width)
        buffer = state.__dict__.setdefault("buffer", torch.zeros(state.streams, 64))
        buffer[:, :width] = step.probs
        return replace(step, probs=buffer[:, :width])


class LateCrash(Counter):
    def rebase(self, state: Any, step: Step, width: int) -> Step:
        state.count = torch.rand_like(state.count)
        return super().rebase(state, step, width)


class AcceptsAnything(Counter):
    class Stream(Stream):
        def predict(self, x: Any) -> Prediction:
            return super().predict(tree_map(torch.nan_to_num, x))

        def observe(self, y: Any, prediction: Prediction | None = None) -> None:
            try:
                super().observe(y, prediction)
            except ObserveError:
                super().observe(y, super().predict(0))

    def stream(self) -> Any:
        return self.Stream(self)


class KeepsBuffer(KNN):
    class Stream(Stream):
        def predict(self, x: Any) -> Prediction:
            self.given = x
            return super().predict(x)

        def observe(self, y: Any, prediction: Prediction | None = None) -> None:
            super().observe(y, prediction or super().predict(self.given))

    def __init__(self) -> None:
        super().__init__(nn.Identity(), labels=())

    def stream(self) -> Any:
        return self.Stream(self)


class TouchesModel(KNN):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 3))

    @torch.no_grad()
    def learn(self, state: Any, step: Any, y: Tensor, mask: Tensor | None) -> None:
        super().learn(state, step, y, mask)
        self.backbone.head.weight.mul_(0.9)  # type: ignore[union-attr]


MUTANTS: list[tuple[Callable[[], OnlineMethod[Any]], str]] = [
    (lambda: ImpurePredict(LABELS), "check_predicting_is_pure"),
    (lambda: ImpurePredict(LABELS), "check_unobserved_predictions_do_not_matter"),
    (lambda: SharedState(LABELS), "check_streams_are_independent"),
    (lambda: SortedLabels(LABELS), "check_order_of_labels"),
    (lambda: Unnormalised(LABELS), "check_probabilities"),
    (lambda: Negative(LABELS), "check_probabilities"),
    (lambda: MaskIgnored(LABELS), "check_masked_streams_are_untouched"),
    (lambda: MaskIgnored(LABELS), "check_lockstep_equals_one_by_one"),
    (lambda: MixesStreams(LABELS), "check_lockstep_equals_one_by_one"),
    (lambda: LeakyPadding(LABELS), "check_padding_has_no_probability"),
    (lambda: Amnesiac(LABELS), "check_save_and_load"),
    (lambda: Unrepeatable(LABELS), "check_making_is_repeatable"),
    (lambda: Resurrecting(LABELS), "check_reset_is_as_new"),
    (lambda: Rewriting(LABELS), "check_predictions_never_change"),
    (lambda: LateCrash(LABELS), "check_late_labels"),
    (lambda: AcceptsAnything(LABELS), "check_bad_numbers_are_refused"),
    (lambda: AcceptsAnything(LABELS), "check_wrong_observations_are_refused"),
    (KeepsBuffer, "check_inputs_are_not_aliased"),
    (TouchesModel, "check_method_is_untouched"),
]


@pytest.mark.parametrize(("make", "check"), MUTANTS, ids=[check for _, check in MUTANTS])
def test_a_mutant_is_caught(make: Callable[[], OnlineMethod[Any]], check: str) -> None:
    checks = {found.__name__: found for found in checks_for(make())}
    with pytest.raises(AssertionError, match=check):
        run_check(checks[check], Trial(make))


def test_the_methods_they_are_made_from_are_sound() -> None:
    check_method(lambda: Counter(LABELS))
    check_method(lambda: KNN(nn.Identity(), labels=()))


def test_a_crash_is_a_failure_too() -> None:
    class Crashing(Counter):
        def commit(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
            raise RuntimeError("out of paper")

    with pytest.raises(AssertionError, match="the method raised RuntimeError: out of paper"):
        check_method(lambda: Crashing(LABELS))


def test_the_first_failure_is_named() -> None:
    with pytest.raises(AssertionError, match=r"check_probabilities: probs sums to 0\.9"):
        check_method(lambda: Unnormalised(LABELS))
