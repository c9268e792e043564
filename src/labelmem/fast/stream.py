"""A step of the stream combiner for one stream on a CPU.

The same as :class:`labelmem.stream_combiner.StreamCombiner` says with tensors, over the labels in
memory alone: no padding, no masks, and three passes over all labels where r must be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from labelmem.fast import Array
from labelmem.fast.layers import gru

__all__ = ["Labels", "decide", "echo_of", "features_of", "remember", "signals_of"]

_LOWEST = -15.0  # logarithms of probabilities are cut here
_NOT_THERE = -8.0  # what a label that was not in memory counts as, in nats


@dataclass(frozen=True)
class Labels:
    """What a read told of the labels in memory, one row for each."""

    names: Array
    """(Y,)."""
    s: Array
    """(Y,) Eq. 3's s."""
    strength: Array
    """(Y,) Eq. 2's alpha."""
    writes: Array
    """(Y,)."""
    age: Array
    """(Y,)."""
    since_first: Array
    """(Y,)."""
    rates: Array
    """(Y, 2)."""
    cosine: Array
    """(Y, B)."""
    size: Array
    """(Y, B)."""

    @property
    def match(self) -> Array:
        """(Y, B) how far each block of h agrees with that block of M, M's length included."""
        matched: Array = np.maximum(self.cosine * self.size, 0)
        return matched


def features_of(labels: Labels, r: Array) -> Array:
    """(Y, F) of the labels in memory; ``r`` (Y,) is the model's belief in them."""
    kind = r.dtype
    age = np.maximum(labels.age, 1).astype(kind)
    writes = labels.writes.astype(kind)
    away = (labels.since_first - labels.age).astype(kind) / np.maximum(writes - 1, 1)
    log_age = np.log(age)
    parts = len(labels.rates.T), len(labels.cosine.T)
    seen = np.empty((5 + parts[0] + 2 * parts[1], len(r)), kind)
    seen[0] = np.log(np.maximum(labels.strength, 1e-3))
    seen[1] = log_age / 2
    seen[2] = age < 2
    seen[3] = _log(r) / 5
    seen[4] = (np.log(np.maximum(away, 1)) - log_age) * (writes > 1) / 2
    seen[5 : 5 + parts[0]] = np.log(labels.rates.T + 0.01) / 2
    seen[5 + parts[0] : 5 + sum(parts)] = labels.cosine.T
    seen[5 + sum(parts) :] = np.log1p(labels.match.T)
    return seen.T


def signals_of(past: Array, r: Array, labels: Labels, inside: Array) -> Array:
    """(U,) of the stream; ``inside`` (Y,) is r of the labels in memory."""
    count = len(inside)
    overlap = inside.sum()
    left, entropy = max(1 - overlap, 1e-6), _entropy(r)
    rest = max((entropy - _entropy(inside)) / left + np.log(left), 0)
    outside = r.copy()
    outside[labels.names] = 0
    top, best = np.log(left), np.zeros(labels.cosine.shape[1], r.dtype)
    now = [
        np.log(past[0] + 1) / 3,
        np.log(count + 1) / 3,
        float(count > 0),
        entropy / 5,
        _log_max(r) / 3,
        rest / 5,
        min(_log_max(outside) - top, 0) / 3,
        _entropy(labels.s) / 2,
        _log_max(labels.s) / 2 if count else 0.0,
        overlap,
        top / 5,
    ]
    best = labels.cosine.max(axis=0) if count else best
    matched = np.log1p(labels.match.sum(axis=0)) / 2
    seen: Array = np.concatenate([np.array(now, r.dtype), past[1:], best, matched])
    return seen


def decide(
    weights: Mapping[str, Array],
    features: Array,
    signals: Array,
    s: Array,
    echo: Array,
    mu: Array,
    h: Array | None,
) -> tuple[float, Array, Array, Array]:
    """Theta, the corrected s (Y,), the first guess at it (Y,), and the next mu.

    Parameters
    ----------
    weights
        The combiner's, by name.
    features, signals
        From :func:`features_of` and :func:`signals_of`, in the combiner's units.
    h
        (d,) the model's hidden vector, if it is seen.
    """
    correct = "score_plain" in weights
    score = _log(s)
    if correct:
        shared = weights["score_stream"] @ signals + weights["score_bias"]
        inner = features @ weights["score_inner"].T
        inner += shared
        np.maximum(inner, 0, out=inner)
        inner = inner @ weights["score_middle"].T
        np.maximum(inner, 0, out=inner)
        score += features @ weights["score_plain"]
        score += inner @ weights["score_outer"]
    log_s = _log_softmax(score)
    seen = [signals, echo, _spread_of(log_s)]
    cell = [weights[f"gru.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    mu = gru(np.concatenate([*seen, h] if h is not None else seen), mu, *cell)
    guess = np.exp(log_s)
    if correct:
        log_s = _log_softmax(score + features @ (mu @ weights["score_moved"]))
    inner = weights["theta_inner"] @ np.concatenate([mu, signals, echo, _spread_of(log_s)])
    x = np.maximum(inner, 0) @ weights["theta_outer"] + weights["bias_theta"]
    return float(1 / (1 + np.exp(-x))), np.exp(log_s), guess, mu


def remember(past: Array, rates: tuple[float, ...], new: bool, age: int, missed: bool) -> Array:
    """How labels came (PAST,), after one more of the given ``age``."""
    k, fades = len(rates), np.array(rates, past.dtype)
    came = past.copy()
    came[0] += 1
    came[1], came[2] = new, missed
    came[3 : 3 + k] = fades * past[3 : 3 + k] + (1 - fades) * new
    came[3 + k :] = fades * past[3 + k :] + (1 - fades) * (age == 1)
    return came


def echo_of(guess: Array, slot: int) -> Array:
    """(2,) whether the first guess hit, and its log s of the label at ``slot``, -1 for none."""
    if slot < 0:
        return np.array([0, _NOT_THERE / 4], guess.dtype)
    log_s = max(float(_log(guess[slot : slot + 1])[0]), _NOT_THERE)
    return np.array([guess.argmax() == slot, log_s / 4], guess.dtype)


def _log_softmax(score: Array) -> Array:
    if not len(score):
        return score
    score = score - score.max()
    score -= np.log(np.exp(score).sum())
    return score


def _spread_of(log_s: Array) -> Array:
    """(2,) how undecided s is: its entropy and largest logarithm, 0 without memory."""
    if not len(log_s):
        return np.zeros(2, log_s.dtype)
    return np.array([-(np.exp(log_s) @ log_s) / 2, log_s.max() / 2], log_s.dtype)


def _log(p: Array) -> Array:
    logs: Array = np.log(np.maximum(p, np.exp(_LOWEST).astype(p.dtype)))
    return logs


def _log_max(p: Array) -> float:
    return float(_log(p.max(keepdims=True))[0]) if len(p) else 0.0


def _entropy(p: Array) -> float:
    return -float(p @ _log(p))
