"""What speaks for each label, as :mod:`labelmem.logit_memory.evidence` has it, for one input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import exp, kernel, largest, total
from labelmem.engines.numba.logit.following import row_of
from labelmem.engines.numba.logit.layout import CELLS, KNOWN, NEW, SLOTS

__all__ = ["gather", "listen", "log_sum", "nearness", "offsets", "tame", "weigh"]

_ONE, _NONE = np.float32(1.0), np.float32(0.0)
_TINY = np.float32(1e-9)


@kernel
def tame(u: Any, c: Any, peak: float) -> float:
    """Factor on the logits of a model that is too sure; ``peak`` is this one's."""
    observed = u.numbers[0] + u.numbers[1]
    usual = u.numbers[4] / observed if observed > 0 else peak
    return min(1.0, (math.log(u.counts[KNOWN]) + c.certainty) / max(usual, 1e-9))


@kernel
def surprise(u: Any, whole: np.float32) -> np.float32:
    """How unusual a log-sum is, in standard deviations."""
    n = u.numbers[0] + u.numbers[1]
    if n < 6:
        return _NONE
    mean = u.numbers[2] / n
    spread = np.float32(math.sqrt(max(u.numbers[3] / n - mean * mean, 1e-12)))
    return min(max((whole - np.float32(mean)) / spread, np.float32(-3.0)), np.float32(3.0))


@kernel
def nearness(u: Any, c: Any, places: Any, near: Any) -> None:
    """(J, N) how near the cells are to places (J, d), by differences."""
    n = u.counts[CELLS]
    size = max(total(u.length[:n]) / np.float32(max(n, 1)), _TINY)
    for i in range(n):
        cell = u.place[i]
        for j in range(len(places)):
            x, found = places[j], np.float32(0.0)
            for k in range(len(cell)):
                off = cell[k] - x[k]
                found += off * off
            near[j, i] = found
    sharp = np.float32(-c.sharpness / 2.0)
    for j in range(len(places)):
        heard = near[j]
        for i in range(n):
            heard[i] = exp(sharp * heard[i] / size)


@kernel
def listen(u: Any, near: Any, votes: Any) -> None:
    """(m,) what cells that are this near (N,) say of the slots."""
    for y in range(len(votes)):
        votes[y] = _NONE
    for i in range(u.counts[CELLS]):
        heard = near[i]
        for k in range(u.vote.shape[1]):
            votes[u.about[i, k]] += heard * u.vote[i, k]


@kernel
def score_means(u: Any, c: Any, along: Any, own: float, without: int, count: Any, out: Any) -> None:
    """(m,) scores of the means, and how many examples they are made of.

    Parameters
    ----------
    along
        (m,) products of the plain means with the key times A.
    own
        That of the key itself.
    without
        The slot of the label that the key is an example of: it is left out; -1 for none.
    """
    kappa = u.tally[3]
    for y in range(len(out)):
        pull = u.pull[y]
        out[y] = kappa * (pull * along[y] - pull * pull * u.square[y] / 2.0)
    for y in range(len(out)):
        count[y] = u.count[y]
    if without < 0:
        return
    n, v, s = u.count[without], along[without], u.square[without]
    left = max(n - 1.0, 0.0)
    some, rest = 1.0 if left > 0.5 else 0.0, max(left, 1.0)
    square = some * (n * n * s - 2.0 * n * v + own) / (rest * rest)
    pull = left / (left + c.pseudo_count)
    out[without] = kappa * (pull * some * (n * v - own) / rest - pull * pull * square / 2.0)
    count[without] = left


@kernel
def log_sum(x: Any, spare: Any) -> np.float32:
    """Of the exponentials of x; ``spare`` is used up."""
    top = largest(x)
    for i in range(len(x)):
        spare[i] = exp(x[i] - top)
    return top + np.float32(math.log(total(spare[: len(x)])))


@kernel
def known_beside(u: Any, extra: int) -> np.float32:
    """The log of how many labels the model knows that are no candidates; minus infinity if none."""
    t = u.counts
    return np.float32(math.log(np.float32(t[KNOWN] - (t[SLOTS] - t[NEW]) - extra)))


@kernel
def _ahead(u: Any, c: Any, means: Any, spare: Any, out: Any) -> None:
    """Nats by which each mean explains the key better than what is known does."""
    m = len(means)
    for y in range(m):
        spare[y] = means[y] if u.is_new[y] == 0 else np.float32(-math.inf)
    spare[m] = known_beside(u, 0)
    ground = log_sum(spare[: m + 1], out) - np.float32(math.log(u.counts[KNOWN]))
    trust = np.float32((u.tally[1] + c.doubted) / (u.tally[1] + c.relied))
    clear = np.float32(c.clear)
    for y in range(m):
        out[y] = trust * min(max(means[y] - ground, -clear), clear)


@kernel
def _of_rows(u: Any, answer: int, chosen: int, without: int, labels: int, out: Any) -> None:
    """Log of how often each slot's label was true when the model said the same, over the usual."""
    usual = np.float32(0.5 / labels)
    pair = row_of(u, answer)
    while pair >= 0:
        y = u.pair_slot[pair]
        before = usual + np.float32(0.5) if y == chosen else usual
        true = np.float32(u.often[pair])
        if y == without:
            true = max(true - _ONE, _NONE)
        out[y] = np.float32(math.log((true + before) / before))
        pair = u.next[pair]


@kernel
def gather(
    u: Any,
    c: Any,
    base: Any,
    chosen: int,
    answer: int,
    whole: np.float32,
    along: Any,
    own: float,
    without: int,
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
    labels = u.counts[KNOWN] + u.counts[NEW]
    score_means(u, c, along, own, without, count, means)
    _ahead(u, c, means, held, ahead)
    for k in range(1, len(F)):
        for y in range(n if k == 1 else m, n):
            F[k, y] = 0.0
    for y in range(n):
        F[0, y] = base[y]
        F[1, y] = 0.0
    F[1, chosen] = 1.0
    unusual, half = -surprise(u, whole), np.float32(c.half)
    strength = np.float32(c.strength)
    for y in range(m):
        there = _ONE if count[y] > 0 else _NONE
        F[2, y] = ahead[y] * u.is_new[y] * there
        F[3, y] = ahead[y] * (_ONE - u.is_new[y]) * count[y] / (count[y] + half)
    for y in range(m):
        F[4, y] = unusual * u.is_new[y]
        F[5, y] = u.log_count[y]
        F[6, y] = strength * votes[y]
    for y in range(m):
        F[7, y] = 0.0
        F[8, y] = np.float32(linear[y])
    if without >= 0:
        F[5, without] = np.float32(math.log(np.float32(2.0) * count[without] + _ONE))
    _of_rows(u, answer, chosen, without, labels, F[7])
    if u.counts[NEW]:
        for y in range(n):
            held[y] = np.float32(-math.inf) if y < m and u.is_new[y] > 0 else base[y]
        held[n - 1] += known_beside(u, n - 1 - m)
        mass = log_sum(held[:n], count)
        for y in range(m):
            F[0, y] = mass if u.is_new[y] > 0 else F[0, y]


@kernel
def offsets(u: Any, c: Any, extra: int, out: Any) -> None:
    """(C,) of new labels the log of how often each came, of the rest the log of its number."""
    t = u.counts
    one = math.log((u.numbers[1] + 0.5) / (u.numbers[0] + c.early) / max(t[NEW], 1))
    for y in range(len(out)):
        out[y] = 0.0
    for y in range(t[SLOTS]):
        out[y] = one * u.is_new[y]
    out[len(out) - 1] = known_beside(u, extra)


@kernel
def weigh(theta: Any, F: Any, offset: Any, out: Any) -> None:
    """(C,) nats: the features weighed and summed."""
    for y in range(len(out)):
        out[y] = offset[y]
    for k in range(len(theta)):
        weight, feature = theta[k], F[k]
        for y in range(len(out)):
            out[y] += weight * feature[y]
