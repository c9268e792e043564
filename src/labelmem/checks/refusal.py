"""Inputs that no method should swallow."""

from __future__ import annotations

import math
from typing import Any

import torch

from labelmem.checks.trial import Trial, follow, same, say, snapshot
from labelmem.errors import InputError
from labelmem.trees import leaves, tree_map


def check_bad_numbers_are_refused(trial: Trial) -> None:
    """NaN and infinite inputs are refused with an InputError, and leave no trace."""
    method, turns = trial.make(), trial.user(0)
    stream = method.stream()
    follow(stream, turns[:4])
    x, y = turns[4]
    if not any(leaf.is_floating_point() for leaf in leaves(x)):
        return
    before, expected = snapshot(stream), stream.predict(x)
    for bad in (math.nan, math.inf, -math.inf):
        try:
            stream.predict(_spoiled(x, bad))
        except InputError:
            continue
        raise AssertionError(f"an input with {bad} in it was accepted")
    say(snapshot(stream) == before, "a refused input changed the state")
    say(same(stream.predict(x).probs, expected.probs), "a refused input changed predictions")
    stream.observe(y)


def _spoiled(x: Any, bad: float) -> Any:
    """A copy of the input whose floating point parts have one bad value each."""

    def spoil(leaf: torch.Tensor) -> torch.Tensor:
        leaf = leaf.clone()
        if leaf.is_floating_point():
            leaf.view(-1)[-1] = bad
        return leaf

    return tree_map(spoil, x)
