"""Kernels for Eq. 4 where most labels differ little from the background: what these drift by.

A label counts as near the background if the length of what lies between their states, times the
longest row of weights, is small: no input of a gate can differ by more than that. The states of all
that are near move by the same tangent, step after step, and so do the marks that small r have left
in them. So nothing is moved at all: with M the product of the tangents since a step when all states
were written down, the ``base``, and g(i) what a unit of the r of step i has become,

    mu = background + M (base - background then) + sum over i of g(i) r(i),

and theta takes one product of a vector with the base and with the r of a few steps. Labels that are
far have states of their own and move by the cell.

``path`` (1 + hidden + rows, hidden) holds the background, M, and the g(i); ``seen`` (rows, W) the
r(i), of which the last has not entered the states yet.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import copy, dot, fill, kernel, largest
from labelmem.compiled.label import cell, longest, sigmoid, tangent
from labelmem.compiled.mix import believe, mix_each
from labelmem.compiled.scorer import BLOCK, add_product

__all__ = ["ROWS", "drift_apart", "drift_states", "drift_step"]
__all__ += ["limits", "missed_by", "remember", "start_path", "stricter"]

ROWS = 12
"""Steps after which all states are written down again."""
_NEAR = np.float32(math.sqrt(np.finfo(np.float32).eps))
_ONE = np.float32(1.0)
_STRIPE = 512  # labels whose theta stays in the nearest cache while rows are added


@kernel
def start_path(background: Any, path: Any) -> None:
    """The path of states that have just been written down."""
    k = len(background)
    copy(background, path[0])
    for u in range(k):
        fill(path[1 + u], np.float32(0.0))
        path[1 + u, u] = _ONE


@kernel
def _move_path(by: Any, own: Any, count: int, path: Any, out: Any) -> None:
    """The path one step further: ``own`` (hidden,) and the tangent ``by`` (hidden, hidden + 2)."""
    k = len(own)
    copy(own, out[0])
    for u in range(k):
        fill(out[1 + u], np.float32(0.0))
        for v in range(k):
            weight, row, target = by[u, v], path[1 + v], out[1 + u]
            for j in range(k):
                target[j] += weight * row[j]
        for i in range(count - 1):
            out[1 + k + i, u] = dot(by[u, :k], path[1 + k + i])
        out[k + count, u] = by[u, k]


@kernel
def limits(from_mu: Any, from_scores: Any) -> Any:
    """(2,) by how much a difference to the background reaches the gates, and the r of a near label.

    The first is the length of the longest row of weights, the second the most that r may be.
    """
    found, of_scores = np.empty(2, np.float32), longest(from_scores)
    found[0] = longest(from_mu)
    found[1] = min(_NEAR / of_scores, _ONE) if of_scores > 0 else _ONE
    return found


@kernel
def stricter(from_mu: Any, from_scores: Any, limit: Any) -> bool:
    """Whether less is near than was under the ``limit``, since the weights have been trained."""
    now = limits(from_mu, from_scores)
    return bool(now[0] > limit[0] or now[1] < limit[1])


@kernel
def _reach(limit: Any, count: int, path: Any) -> np.float32:
    """How far a label may have come that was near all the time, over what near means.

    It began within that, and none of its r was above the limit.
    """
    k, size, share = path.shape[1], np.float32(0.0), limit[0] * limit[1] / _NEAR
    for u in range(k):
        size += dot(path[1 + u], path[1 + u])
    found = np.float32(math.sqrt(size))
    for i in range(count):
        g = path[1 + k + i]
        found += share * np.float32(math.sqrt(dot(g, g)))
    return found


@kernel
def _add_rows(weights: Any, rows: Any, first: int, out: Any) -> None:
    """Add ``weights`` (R,) times the part of ``rows`` (R, W) that begins at ``first``."""
    n, fours = len(out), len(weights) - len(weights) % 4
    for f in range(0, fours, 4):
        a, b, c, d = weights[f], weights[f + 1], weights[f + 2], weights[f + 3]
        x0, x1 = rows[f, first : first + n], rows[f + 1, first : first + n]
        x2, x3 = rows[f + 2, first : first + n], rows[f + 3, first : first + n]
        for i in range(n):
            out[i] += (a * x0[i] + b * x1[i]) + (c * x2[i] + d * x3[i])
    for f in range(fours, len(weights)):
        a, x0 = weights[f], rows[f, first : first + n]
        for i in range(n):
            out[i] += a * x0[i]


@kernel
def _theta_of_near(
    to_theta: Any, bias: np.float32, origin: Any, base: Any, seen: Any, path: Any, theta: Any
) -> None:
    """Theta of all labels, as if all were near."""
    k, count = len(origin), len(seen)
    by_base, by_seen = np.zeros(k, np.float32), np.empty(count, np.float32)
    for u in range(k):
        for v in range(k):
            by_base[v] += to_theta[u] * path[1 + u, v]
    for i in range(count):
        by_seen[i] = dot(to_theta, path[1 + k + i])
    constant = bias + dot(to_theta, path[0]) - dot(by_base, origin)
    for first in range(0, len(theta), _STRIPE):
        part = theta[first : first + _STRIPE]
        fill(part, constant)
        _add_rows(by_base, base, first, part)
        _add_rows(by_seen, seen, first, part)
        for i in range(len(part)):
            part[i] = sigmoid(part[i])


@kernel
def _move_far(
    weights: Any,
    shared: Any,
    to_theta: Any,
    bias: np.float32,
    far: Any,
    mu: Any,
    scores: Any,
    theta: Any,
    out: Any,
) -> None:
    """Move the states ``mu`` (hidden, F) of labels that are far, with their theta."""
    k, count = mu.shape
    from_mu, bias_mu, from_scores = weights
    x, seen = np.zeros((k, BLOCK), np.float32), np.zeros((2, BLOCK), np.float32)
    room, found = np.empty((6 * k, BLOCK), np.float32), np.empty(BLOCK, np.float32)
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        for u in range(k):
            copy(mu[u, first : first + n], x[u])
        for u in range(2):
            copy(scores[u, first : first + n], seen[u])
        cell(from_mu, bias_mu, from_scores, shared, x, seen, room)
        fill(found, bias)
        for u in range(k):
            copy(x[u, :n], out[u, first:])
            for i in range(BLOCK):
                found[i] += to_theta[u] * x[u, i]
        for i in range(BLOCK):
            found[i] = sigmoid(found[i])
        for i in range(n):
            theta[far[first + i]] = found[i]


@kernel
def drift_step(
    from_h: Any,
    from_flags: Any,
    from_scores: Any,
    from_mu: Any,
    bias_input: Any,
    bias_mu: Any,
    to_theta: Any,
    bias_theta: Any,
    h: Any,
    missed: Any,
    origin: Any,
    base: Any,
    seen: Any,
    path: Any,
    far: Any,
    far_mu: Any,
    far_scores: Any,
    limit: Any,
    logits: Any,
    names: Any,
    score: Any,
    partition: bool,
    out: Any,
    next_path: Any,
    next_far: Any,
) -> np.float32:
    """Eq. 1, 4 and 5: P, theta, r and s are the rows of ``out`` (4, W).

    What is said above of the states becomes ``next_path`` and ``next_far``; of the latter far
    labels' own. How far the others may have come is returned, over what near means.
    """
    k, count = len(origin), len(seen)
    shared = np.empty(3 * k, np.float32)
    for u in range(3 * k):
        shared[u] = dot(from_h[u], h) + dot(from_flags[u], missed) + bias_input[u]
    own, by = tangent(from_mu, bias_mu, from_scores, shared, path[0])
    _move_path(by, own, count, path, next_path)
    theta = out[1]
    _theta_of_near(to_theta, bias_theta[0], origin, base, seen, next_path, theta)
    weights = (from_mu, bias_mu, from_scores)
    _move_far(weights, shared, to_theta, bias_theta[0], far, far_mu, far_scores, theta, next_far)
    believe(logits, out[2])
    mix_each(out[2], names, score, theta, partition, out[3], out[0])
    return _reach(limit, count, next_path)


@kernel
def _state_of(origin: Any, base: Any, seen: Any, path: Any, y: int, mu: Any) -> None:
    """The state (hidden,) of a label that is near."""
    k = len(origin)
    copy(path[0], mu)
    for v in range(k):
        apart = base[v, y] - origin[v]
        for u in range(k):
            mu[u] += path[1 + u, v] * apart
    for i in range(len(seen)):
        for u in range(k):
            mu[u] += path[1 + k + i, u] * seen[i, y]


@kernel
def drift_states(
    origin: Any, base: Any, seen: Any, path: Any, far: Any, far_mu: Any, out: Any
) -> None:
    """The states (hidden, W) of all labels."""
    (k, wide), count = base.shape, len(seen)
    rows = (k + count + 3) // 4 * 4
    by, x = np.zeros((k, rows), np.float32), np.zeros((rows, BLOCK), np.float32)
    moved = np.empty((k, BLOCK), np.float32)
    for u in range(k):
        copy(path[1 + u], by[u])
        for i in range(count):
            by[u, k + i] = path[1 + k + i, u]
    for first in range(0, wide, BLOCK):
        n = min(BLOCK, wide - first)
        for u in range(k):
            part = base[u, first : first + n]
            for i in range(n):
                x[u, i] = part[i] - origin[u]
            fill(moved[u], path[0, u])
        for i in range(count):
            copy(seen[i, first : first + n], x[k + i])
        add_product(by, x, moved)
        for u in range(k):
            copy(moved[u, :n], out[u, first:])
    for i in range(len(far)):
        for u in range(k):
            out[u, far[i]] = far_mu[u, i]


@kernel
def drift_apart(limit: Any, background: Any, mu: Any) -> Any:
    """Labels whose states (hidden, W) are not near the background, and these states (hidden, F)."""
    k, wide = mu.shape
    most = _NEAR / limit[0] if limit[0] > 0 else np.float32(np.inf)
    far, count = np.empty(wide, np.int64), 0
    apart = np.empty(_STRIPE, np.float32)
    for first in range(0, wide, _STRIPE):
        n = min(_STRIPE, wide - first)
        fill(apart, np.float32(0.0))
        for u in range(k):
            part, own = mu[u, first : first + n], background[u]
            for i in range(n):
                apart[i] += (part[i] - own) * (part[i] - own)
        for i in range(n):
            if apart[i] > most * most:
                far[count] = first + i
                count += 1
    own = np.empty((k, count), np.float32)
    for u in range(k):
        for i in range(count):
            own[u, i] = mu[u, far[i]]
    return far[:count].copy(), own


@kernel
def _candidates(r: Any, most: np.float32, names: Any, s: Any, known: Any) -> Any:
    """Labels whose scores are too large to be near, but the ``known`` ones."""
    is_known = np.zeros(len(r), np.bool_)
    for i in range(len(known)):
        is_known[known[i]] = True
    found, count = np.empty(len(r), np.int64), 0
    for i in range(len(names)):
        y = names[i]
        if s[y] > 0 and not is_known[y]:
            is_known[y] = True
            found[count] = y
            count += 1
    for first in range(0, len(r), BLOCK):
        part = r[first : first + BLOCK]
        if largest(part) > most:
            for i in range(len(part)):
                if part[i] > most and not is_known[first + i]:
                    found[count] = first + i
                    count += 1
    return found[:count]


@kernel
def remember(
    limit: Any,
    r: Any,
    s: Any,
    names: Any,
    origin: Any,
    base: Any,
    seen: Any,
    count: int,
    path: Any,
    far: Any,
    far_mu: Any,
) -> Any:
    """Labels that are far from now on, their states (hidden, F), and their scores (2, F).

    ``r`` (W,) is put behind the ``count`` rows of ``seen``.
    """
    k, old = far_mu.shape
    more = _candidates(r, limit[1], names, s, far)
    wide = old + len(more)
    now, mu = np.empty(wide, np.int64), np.empty((k, wide), np.float32)
    scores, own = np.empty((2, wide), np.float32), np.empty(k, np.float32)
    for i in range(old):
        now[i] = far[i]
    for u in range(k):
        copy(far_mu[u], mu[u])
    for i in range(len(more)):
        now[old + i] = more[i]
        _state_of(origin, base, seen[:count], path, more[i], own)
        for u in range(k):
            mu[u, old + i] = own[u]
    for i in range(wide):
        scores[0, i], scores[1, i] = r[now[i]], s[now[i]]
    copy(r, seen[count])
    return now, mu, scores


@kernel
def missed_by(r: Any, s: Any, y: int) -> Any:
    """(2,) whether the best labels of r and of s (W,) were not ``y``."""
    missed = np.empty(2, np.float32)
    missed[0], missed[1] = _misses(r, y), _misses(s, y)
    return missed


@kernel
def _misses(scores: Any, y: int) -> int:
    top = largest(scores)
    if y >= len(scores) or scores[y] < top or top <= 0:
        return 1
    for earlier in range(y):  # of labels that score alike the first counts
        if scores[earlier] == top:
            return 1
    return 0
