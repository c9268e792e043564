"""What speaks for each label, as :mod:`labelmem.logit_memory.evidence` has it, for one input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import exp, largest, part, total
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.places import place_of
from labelmem.logit_memory.evidence import _CLEAR, _HALF
from labelmem.logit_memory.statistics import _DOUBTED, _RELIED
from labelmem.logit_memory.user import _EARLY

__all__ = ["become_near", "gather", "known_beside", "listen", "offsets", "tame", "weigh"]

_ONE, _NONE, _LEAST = np.float32(1.0), np.float32(0.0), np.float32(-math.inf)
_FURTHEST, _TINY, _NO_MORE = np.float32(3.0), np.float32(1e-9), np.int64(0)


@part
def tame(t: Any, peak: float) -> Any:
    """Factor on the logits of a model that is too sure; ``peak`` is this one's."""
    numbers = at.double(t[at.NUMBERS])
    observed = numbers[0] + numbers[1]
    usual = numbers[4] / observed if observed > 0 else peak
    cap = math.log(t[at.KNOWN, 0]) + at.double(t[at.OPTIONS])[at.CERTAINTY]
    return min(1.0, cap / max(usual, 1e-9))


@part
def _surprise(t: Any, log_sum: np.float32) -> np.float32:
    """How unusual a log-sum is, in standard deviations."""
    numbers = at.double(t[at.NUMBERS])
    n = numbers[0] + numbers[1]
    if n < 6:
        return _NONE
    mean = numbers[2] / n
    spread = np.float32(math.sqrt(max(numbers[3] / n - mean * mean, 1e-12)))
    return min(max((log_sum - np.float32(mean)) / spread, -_FURTHEST), _FURTHEST)


@part
def become_near(t: Any, near: Any) -> None:
    """From squares of distances (N,) to how near the cells are."""
    length = at.single(t[at.LENGTH])[: len(near)]
    size = max(total(length) / np.float32(max(len(near), 1)), _TINY)
    sharp = np.float32(-at.double(t[at.OPTIONS])[at.SHARPNESS] / 2.0)
    for i in range(len(near)):
        near[i] = exp(sharp * near[i] / size)


@part
def listen(t: Any, near: Any, votes: Any) -> None:
    """(m,) what cells that are this near (N,) say of the slots."""
    about, vote = at.whole_rows(t[at.ABOUT]), at.single_rows(t[at.VOTE])
    for y in range(len(votes)):
        votes[y] = _NONE
    for i in range(len(near)):
        heard = near[i]
        votes[about[i, 0]] += heard * vote[i, 0]
        for k in range(1, vote.shape[1]):
            if vote[i, k] == 0:  # the largest come first
                break
            votes[about[i, k]] += heard * vote[i, k]


@part
def _score_means(t: Any, along: Any, own: float, without: int, count: Any, means: Any) -> None:
    """(m,) scores of the means from their products with the key times A; that of the key is own.

    The key is an example of the label of the slot ``without``, if that is not -1; it is left out.
    """
    kappa, square, share = at.double(t[at.TALLY])[3], at.double(t[at.SQUARE]), at.double(t[at.PULL])
    for y in range(len(means)):
        means[y] = kappa * (share[y] * along[y] - share[y] * share[y] * square[y] / 2.0)
    counts = at.double(t[at.COUNT])
    for y in range(len(means)):
        count[y] = counts[y]
    if without >= 0:
        n, v = counts[without], along[without]
        left = max(n - 1.0, 0.0)
        some, rest = 1.0 if left > 0.5 else 0.0, max(left, 1.0)
        length = some * (n * n * square[without] - 2.0 * n * v + own) / (rest * rest)
        pull = left / (left + at.double(t[at.OPTIONS])[at.PSEUDO_COUNT])
        v = some * (n * v - own) / rest
        means[without] = kappa * (pull * v - pull * pull * length / 2.0)
        count[without] = left


@part
def _log_sum(x: Any, spare: Any) -> np.float32:
    """Of the exponentials of x; ``spare`` is used up."""
    top = largest(x)
    for i in range(len(x)):
        spare[i] = exp(x[i] - top)
    return top + np.float32(math.log(total(spare[: len(x)])))


@part
def known_beside(t: Any, extra: Any) -> np.float32:
    """The log of how many labels the model knows that are no candidates; minus infinity if none."""
    known = t[at.KNOWN, 0] - (t[at.SLOTS, 0] - t[at.NEW, 0]) - extra
    return np.float32(math.log(np.float32(known)))


@part
def _of_rows(t: Any, answer: int, chosen: int, without: int, out: Any) -> None:
    """Log of how often each slot's label was true when the model said the same, over the usual."""
    usual = np.float32(0.5 / (t[at.KNOWN, 0] + t[at.NEW, 0]))
    found = place_of(answer, at.whole(t[at.ANSWER]), t[at.ANSWERS, 0], at.whole(t[at.ANSWER_TABLE]))
    slot, often, following = at.whole(t[at.PAIR_SLOT]), at.double(t[at.OFTEN]), at.whole(t[at.NEXT])
    pair = at.whole(t[at.FIRST])[found] if found >= 0 else -1
    while pair >= 0:
        y = slot[pair]
        before = usual + np.float32(0.5) if y == chosen else usual
        true = np.float32(often[pair])
        if y == without:
            true = max(true - _ONE, _NONE)
        out[y] = np.float32(math.log((true + before) / before))
        pair = following[pair]


@part
def gather(
    t: Any,
    base: Any,
    chosen: Any,
    answer: Any,
    log_sum: Any,
    along: Any,
    own: Any,
    without: Any,
    votes: Any,
    linear: Any,
    means: Any,
    spare: Any,
    F: Any,
) -> None:
    """The features (k, C) of all candidates for one input, and the scores (m,) of the means.

    ``base`` (C,) are the model's logits, made smaller where it is too sure; ``chosen`` is the
    candidate and ``answer`` the label that is largest. ``spare`` (3, C) is used up.
    """
    m, n = len(means), F.shape[1]
    count, ahead, held = spare[0], spare[1], spare[2]
    new, log_count = at.single(t[at.IS_NEW]), at.single(t[at.LOG_COUNT])
    _score_means(t, along, own, without, count, means)
    for y in range(m):
        held[y] = _LEAST if new[y] > 0 else means[y]
    held[m] = known_beside(t, _NO_MORE)
    ground = _log_sum(held[: m + 1], ahead) - np.float32(math.log(t[at.KNOWN, 0]))
    tally, clear, half = at.double(t[at.TALLY]), np.float32(_CLEAR), np.float32(_HALF)
    trust = np.float32((tally[1] + _DOUBTED) / (tally[1] + _RELIED))
    for y in range(m):
        ahead[y] = trust * min(max(means[y] - ground, -clear), clear)
    strength = np.float32(at.double(t[at.OPTIONS])[at.STRENGTH])
    unusual = -_surprise(t, log_sum)
    for k in range(1, len(F)):
        for y in range(m, n):
            F[k, y] = 0.0
    for y in range(n):
        F[0, y] = base[y]
    for y in range(m):
        F[2, y] = ahead[y] * new[y] * (_ONE if count[y] > 0 else _NONE)
        F[3, y] = ahead[y] * (_ONE - new[y]) * count[y] / (count[y] + half)
    for y in range(m):
        F[1, y] = F[7, y] = 0.0
        F[4, y] = unusual * new[y]
        F[5, y] = log_count[y]
        F[6, y] = strength * votes[y]
        F[8, y] = np.float32(linear[y])
    F[1, chosen] = 1.0
    if without >= 0:
        F[5, without] = np.float32(math.log(np.float32(2.0) * count[without] + _ONE))
    _of_rows(t, answer, chosen, without, F[7])
    if t[at.NEW, 0]:  # a new label may take all that the model has to give
        for y in range(n):
            held[y] = _LEAST if y < m and new[min(y, m - 1)] > 0 else base[y]
        held[n - 1] += known_beside(t, n - 1 - m)
        mass = _log_sum(held[:n], count)
        for y in range(m):
            F[0, y] = mass if new[y] > 0 else base[y]


@part
def offsets(t: Any, out: Any) -> None:
    """(C,) of new labels the log of how often each came, of the rest the log of its number."""
    numbers, new, m = at.double(t[at.NUMBERS]), at.single(t[at.IS_NEW]), t[at.SLOTS, 0]
    one = math.log((numbers[1] + 0.5) / (numbers[0] + _EARLY) / max(t[at.NEW, 0], 1))
    for y in range(len(out)):
        out[y] = one * new[y] if y < m else 0.0
    out[len(out) - 1] = known_beside(t, len(out) - 1 - m)


@part
def weigh(theta: Any, F: Any, offset: Any, out: Any) -> None:
    """(C,) nats: the features weighed and summed."""
    for y in range(len(out)):
        out[y] = offset[y]
    for k in range(len(theta)):
        weight, feature = theta[k], F[k]
        for y in range(len(out)):
            out[y] += weight * feature[y]
