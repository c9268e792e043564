"""What a prediction looks like: labels in their order, probabilities that are probabilities."""

from __future__ import annotations

import torch

from labelmem.checks.trial import Trial, played, say
from labelmem.stream import Prediction

_NEAR = 1e-4  # single precision over thousands of labels


def check_order_of_labels(trial: Trial) -> None:
    """The model's labels come first, then the stream's own as they were first observed."""
    method = trial.make()
    stream, expected = method.stream(), list(method.known.names)
    for x, y in trial.user(0):
        p = stream.predict(x)
        say(p.labels == expected, f"labels are {p.labels}; expected {expected}")
        say(p.probs.shape == (len(expected),), "probs is not aligned with labels")
        stream.observe(y)
        if y not in expected:
            expected = [*expected, y]
        say(p.labels != expected or y in p.labels, "a label joined a prediction made before it")
    say(stream.labels == expected, f"the stream's labels are {stream.labels}, not {expected}")


def check_probabilities(trial: Trial) -> None:
    """Probabilities are finite, not negative, and sum to one unless nothing is known yet."""
    stream, turns = trial.make().stream(), trial.user(0)
    for t, p in enumerate(played(stream, turns)):
        expect_valid(p, nothing_seen=t == 0)
    expect_valid(stream.predict(turns[-1][0]), nothing_seen=False)


def check_best_label_is_first(trial: Trial) -> None:
    """``label`` and ``top`` name the labels that ``probs`` puts first."""
    for p in played(trial.make().stream(), trial.user(0)):
        if len(p.probs):
            best = p.labels[int(p.probs.argmax())]
            say(p.label == best, f"label is {p.label!r}, the most probable one is {best!r}")
            say(p.top(1)[0][1] == float(p.probs.max()), "top does not begin with the best label")


def expect_valid(p: Prediction, nothing_seen: bool) -> None:
    """Fail unless a prediction is a distribution, or silent while its stream has seen nothing."""
    probs = p.probs
    say(probs.is_floating_point(), f"probs has type {probs.dtype}")
    say(bool(torch.isfinite(probs).all()), "probs has NaN or infinite values")
    say(bool((probs >= 0).all()), "probs has negative values")
    total = float(probs.sum())
    silent = nothing_seen and total == 0
    say(silent or abs(total - 1) < _NEAR, f"probs sums to {total}, not to one")
