"""A kernel for a step of the stream combiner: what ``fast/stream.py`` says, in one call.

Numbers of the labels lie in rows, one row for each kind, so that all loops run along labels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import (
    copy,
    dot,
    exp,
    fill,
    inlined,
    kernel,
    largest,
    log,
    softmax,
    total,
)
from labelmem.engines.numba.mix import believe, mix
from labelmem.engines.numba.scorer import gru, layer, scores

__all__ = ["Cells", "Weights", "best_of", "follow", "remember"]
__all__ += ["stream_step", "weigh"]

_LOWEST = np.float32(-15.0)  # logarithms of probabilities are cut here
_LEAST = np.float32(1e-30)
_SPAN = 256  # labels that are looked at together
_NOT_THERE = np.float32(-8.0)  # what a label that was not in memory counts as, in nats


class Weights(NamedTuple):
    """The combiner's weights, by their names there; those of the scorer empty if there is none."""

    features_mean: Any
    features_spread: Any
    signals_mean: Any
    signals_spread: Any
    from_input: Any
    from_mu: Any
    bias_input: Any
    bias_mu: Any
    theta_inner: Any
    theta_outer: Any
    bias_theta: Any
    score_plain: Any
    score_inner: Any
    score_stream: Any
    score_bias: Any
    score_middle: Any
    score_outer: Any
    score_moved: Any


class Cells(NamedTuple):
    """What a read saw of the cells (K,) and how they came."""

    names: Any
    score: Any
    alpha: Any
    written: Any
    born: Any
    writes: Any
    rates: Any
    size: Any
    cosine: Any


@inlined
def _log(p: np.float32) -> np.float32:
    """The logarithm of a probability, cut where nothing is left to tell."""
    return max(log(max(p, _LEAST)), _LOWEST)


@inlined
def _entropy(p: Any) -> np.float32:
    found = np.float32(0.0)
    for i in range(len(p)):
        found -= p[i] * _log(p[i])
    return found


@inlined
def _features(w: Any, cells: Any, inside: Any, time: int, log_fades: Any) -> Any:
    """(F, K) of the labels in memory, in the network's units; ``inside`` (K,) is r of them."""
    k, faded, parts = len(inside), len(log_fades), cells.size.shape[1]
    seen = np.empty((5 + faded + 2 * parts, k), np.float32)
    one, half = np.float32(1.0), np.float32(0.5)
    for i in range(k):
        age = np.float32(max(time + 1 - cells.written[i], 1))
        seen[0, i] = log(max(cells.alpha[i], np.float32(1e-3)))
        seen[1, i] = log(age) * half
        seen[2, i] = one if age < 2 else np.float32(0.0)
        seen[3, i] = _log(inside[i]) * np.float32(0.2)
    for i in range(k):
        writes = np.float32(cells.writes[i])
        away = np.float32(cells.written[i] - cells.born[i]) / max(writes - one, one)
        usual = log(max(away, one)) * half - seen[1, i]
        seen[4, i] = usual if writes > 1 else np.float32(0.0)
    for f in range(faded):
        for i in range(k):
            gone = np.float32(max(time - cells.written[i], 0))
            rate = exp(log_fades[f] * gone) * cells.rates[i, f]
            seen[5 + f, i] = log(rate + np.float32(0.01)) * half
    for part in range(parts):
        for i in range(k):
            cosine = cells.cosine[i, part]
            seen[5 + faded + part, i] = cosine
            match = max(cosine * cells.size[i, part], np.float32(0.0))
            seen[5 + faded + parts + part, i] = log(one + match)
    for f in range(len(seen)):
        mean, inverse = w.features_mean[f], one / w.features_spread[f]
        for i in range(k):
            seen[f, i] = (seen[f, i] - mean) * inverse
    return seen


@inlined
def _signals(
    w: Any, past: Any, logits: Any, shift: np.float32, r: Any, cells: Any, inside: Any, spare: Any
) -> Any:
    """(U,) of the stream, likewise; log r is ``logits`` less ``shift``, ``spare`` is used up."""
    k, parts, zero = len(inside), cells.size.shape[1], np.float32(0.0)
    overlap, entropy, best = total(inside), zero, np.float32(-math.inf)
    for y in range(len(logits)):
        entropy -= r[y] * max(logits[y] - shift, _LOWEST)
    left = max(np.float32(1.0) - overlap, np.float32(1e-6))
    top = np.float32(math.log(left))
    copy(r, spare)
    for i in range(k):
        spare[cells.names[i]] = 0
    seen = np.empty(10 + len(past) + 2 * parts, np.float32)
    seen[0] = math.log(past[0] + 1) / 3
    seen[1] = math.log(k + 1) / 3
    seen[2] = 1 if k else 0
    seen[3] = entropy / 5
    seen[4] = _log(largest(r)) / 3
    seen[5] = max((entropy - _entropy(inside)) / left + top, zero) / 5
    seen[6] = min(_log(largest(spare)) - top, zero) / 3
    seen[7] = _entropy(cells.score) / 2
    seen[8] = _log(largest(cells.score)) / 2 if k else zero
    seen[9] = overlap
    seen[10] = top / 5
    copy(past[1:], seen[11:])
    for part in range(parts):
        best, match = np.float32(-math.inf), zero
        for i in range(k):
            best = max(best, cells.cosine[i, part])
            match += max(cells.cosine[i, part] * cells.size[i, part], zero)
        seen[10 + len(past) + part] = best if k else zero
        seen[10 + len(past) + parts + part] = math.log(np.float32(1.0) + match) / 2
    for u in range(len(seen)):
        seen[u] = (seen[u] - w.signals_mean[u]) / w.signals_spread[u]
    return seen


@inlined
def _spread_of(score: Any, s: Any) -> tuple[np.float32, np.float32]:
    """The softmax into ``s``; half its entropy and half its largest logarithm."""
    k, entropy = len(score), np.float32(0.0)
    if k == 0:
        return entropy, entropy
    top, whole = softmax(score, s)
    for i in range(k):
        entropy -= s[i] * (score[i] - top - whole)
    return entropy / np.float32(2.0), -whole / np.float32(2.0)


@inlined
def _move(by: Any, mu: Any, features: Any, score: Any) -> None:
    """Add to ``score`` (K,) the labels' ``features`` (F, K), weighed as mu has it."""
    for f in range(len(features)):
        moved = np.float32(0.0)
        for j in range(len(mu)):
            moved += mu[j] * by[j, f]
        for i in range(len(score)):
            score[i] += moved * features[f, i]


@kernel
def weigh(
    w: Any,
    cells: Any,
    logits: Any,
    h: Any,
    state: Any,
    time: int,
    log_fades: Any,
    correct: bool,
    r: Any,
    spare: Any,
    guess: Any,
    final: Any,
    next_mu: Any,
) -> np.float32:
    """One step before the mixture: theta, r (W,), the labels' scores (K,), first and final, and mu.

    ``state`` is mu, echo and past; ``h`` is empty if it is not seen. ``spare`` (W,) is used up.
    """
    mu, echo, past = state
    top, whole = believe(logits, r)
    k = len(cells.names)
    inside, score = np.empty(k, np.float32), np.empty(k, np.float32)
    for i in range(k):
        inside[i] = r[cells.names[i]]
    for i in range(k):
        score[i] = _log(cells.score[i])
    signals = _signals(w, past, logits, top + whole, r, cells, inside, spare)
    features = np.empty((0, 0), np.float32)
    if correct:
        features = _features(w, cells, inside, time, log_fades)
        scores(w, features, signals, score)
    entropy, most = _spread_of(score, guess)
    told = len(signals)
    # What theta sees and what the GRU cell sees lie one over the other: mu, then the rest, then h.
    k_mu = len(mu)
    room = np.empty(k_mu + told + 4 + len(h), np.float32)
    seen = room[k_mu:]
    copy(signals, seen)
    copy(echo, seen[told:])
    seen[told + 2], seen[told + 3] = entropy, most
    copy(h, seen[told + 4 :])
    gru(w, seen, mu, next_mu)
    copy(next_mu, room)
    copy(cells.score, final)
    if correct:
        _move(w.score_moved, next_mu, features, score)
        entropy, most = _spread_of(score, final)
    seen[told + 2], seen[told + 3] = entropy, most
    x = w.bias_theta[0] + dot(w.theta_outer, layer(w.theta_inner, room[: k_mu + told + 4]))
    return np.float32(1.0 / (1.0 + math.exp(-x)))


@kernel
def stream_step(
    w: Any,
    cells: Any,
    logits: Any,
    h: Any,
    state: Any,
    time: int,
    log_fades: Any,
    correct: bool,
    partition: bool,
    out: Any,
    guess: Any,
    next_mu: Any,
) -> None:
    """The same with the mixture: P, theta, r and s are the rows of ``out`` (4, W)."""
    P, r, s, final = out[0], out[2], out[3], np.empty(len(guess), np.float32)
    seen = (w, cells, logits, h, state, time, log_fades, correct)
    theta = weigh(*seen, r, P, guess, final, next_mu)
    fill(out[1], theta)
    mix(r, cells.names, final, theta, partition, s, P)


@inlined
def best_of(r: Any) -> int:
    """The model's own best label, the first of those that tie; -1 if it has none."""
    top, best = largest(r), -1
    for first in range(0, len(r) if top > 0 else 0, _SPAN):
        part, there = r[first : first + _SPAN], np.float32(0.0)
        for i in range(len(part)):  # on many lanes, unlike a search that may end anywhere
            there += np.float32(part[i] == top)
        if there > 0:
            best = first
            break
    while best >= 0 and r[best] < top:
        best += 1
    return best


@inlined
def follow(
    guess: Any,
    names: Any,
    written: Any,
    time: int,
    best: int,
    y: int,
    past: Any,
    fades: Any,
    out: Any,
    echo: Any,
) -> None:
    """How labels came (PAST,) into ``out``, how the first guess went (2,) into ``echo``.

    ``best`` is the model's own best label.
    """
    slot, count, one = -1, len(fades), np.float32(1.0)
    for i in range(len(names)):
        if names[i] == y:
            slot = i
            break
    new = one if slot < 0 else np.float32(0.0)
    again = one if slot >= 0 and written[slot] == time else np.float32(0.0)
    out[0] = past[0] + one
    out[1] = new
    out[2] = 1 if best != y else 0
    for i in range(count):
        out[3 + i] = fades[i] * past[3 + i] + (one - fades[i]) * new
        out[3 + count + i] = fades[i] * past[3 + count + i] + (one - fades[i]) * again
    hit, log_s = np.float32(0.0), _NOT_THERE
    if slot >= 0:
        first, most = 0, largest(guess)
        while guess[first] < most:
            first += 1
        hit = one if first == slot else np.float32(0.0)
        log_s = max(_log(guess[slot]), _NOT_THERE)
    echo[0], echo[1] = hit, log_s / np.float32(4.0)


@kernel
def remember(
    guess: Any,
    names: Any,
    written: Any,
    time: int,
    r: Any,
    y: int,
    past: Any,
    fades: Any,
    out: Any,
    echo: Any,
) -> None:
    """The same from what the model believed, ``r`` (W,)."""
    follow(guess, names, written, time, best_of(r), y, past, fades, out, echo)
