"""Figures of one form of stream: how often a method was right, how sure, and what it broke."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelmem.bootstrap import interval, resampled
from labelmem_paper.experiments.adapt.meeting import Answers, Met

__all__ = ["FIRST", "form_figures"]

FIRST = 300
"""The steps in which a user decides whether to stay."""
PIECE, ENOUGH = 50, 8
"""The steps of a piece, and the fewest streams or pieces that are worth drawing anew."""
RESAMPLES = 1000
DIGITS = 6

Floats = npt.NDArray[np.float64]
Terms = dict[str, tuple[Floats, Floats]]
"""By figure: what each step adds, and whether it counts; the figure is the ratio of the sums."""


def form_figures(
    met: Sequence[Met], known: int
) -> tuple[dict[str, float], dict[str, list[float] | None]]:
    """Figures over all steps of some streams, each step weighing alike, with 95 % intervals.

    ``accuracy``, that on ``known`` and ``new`` labels, on known ones within the first 300 steps
    (``known_300``) and in the second half of each stream (``late``); ``log_loss``; both of the
    model alone (``model_…``); and ``gain_…``, how much more is right than with the model alone.
    What no step counts for is left out. Streams are drawn anew; where there are few, pieces of
    them. Where there are few of these as well there is no interval.
    """
    terms = [_terms(one, known) for one in met]
    sums = np.stack([_sums(one) for one in terms]) if len(met) >= ENOUGH else _pieces(terms)
    names = list(terms[0])
    total = sums.sum(axis=0)
    drawn = resampled(sums, RESAMPLES, np.random.default_rng(0))
    metrics, intervals = {}, {}
    for i, name in enumerate(names):
        if total[2 * i + 1]:
            metrics[name] = round(float(total[2 * i] / total[2 * i + 1]), DIGITS)
            intervals[name] = _bounds(drawn[:, 2 * i], drawn[:, 2 * i + 1], len(sums))
    return metrics, intervals


def _terms(one: Met, known: int) -> Terms:
    steps = len(one.truth)
    every, t, old = np.ones(steps, bool), np.arange(steps), one.truth < known
    parts = {
        "": every,
        "_known": old,
        "_new": ~old,
        "_known_300": old & (t < FIRST),
        "_late": t >= steps // 2,
    }
    terms = _of(one.method, parts) | {f"model_{k}": v for k, v in _of(one.model, parts).items()}
    gain = one.method.hit.astype(float) - one.model.hit
    for part in ("_known", "_known_300"):
        terms[f"gain{part}"] = gain * parts[part], parts[part].astype(float)
    return terms


def _of(answers: Answers, parts: dict[str, npt.NDArray[np.bool_]]) -> Terms:
    terms: Terms = {"log_loss": (answers.loss, np.ones_like(answers.loss))}
    for part, mask in parts.items():
        terms[f"accuracy{part}"] = (answers.hit & mask).astype(float), mask.astype(float)
    return terms


def _sums(terms: Terms, steps: slice = slice(None)) -> Floats:
    """(2 * figures,) what some steps add up to, and how many of them count."""
    return np.array([column[steps].sum() for pair in terms.values() for column in pair])


def _pieces(terms: Sequence[Terms]) -> Floats:
    """(pieces, 2 * figures) of neighbouring steps: what a stream is like changes along it."""
    return np.stack(
        [
            _sums(one, slice(start, start + PIECE))
            for one in terms
            for start in range(0, len(one["log_loss"][0]), PIECE)
        ]
    )


def _bounds(values: Floats, counts: Floats, units: int) -> list[float] | None:
    if units < ENOUGH:
        return None
    with np.errstate(invalid="ignore"):  # a draw without any step that counts is left out
        low, high = interval(values / counts)
    return [round(low, DIGITS), round(high, DIGITS)]
