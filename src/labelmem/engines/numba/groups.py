"""Kernels that read several cells per label.

Labels are read a block at a time, so that what is known of them halfway stays in the nearest cache.
Loops are small and each knows few arrays: only then does it run on many lanes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from labelmem.engines.numba import exp, fill, kernel, largest, log
from labelmem.engines.numba.read import TINY, direction

__all__ = ["Grouped", "log_scores", "read_groups", "read_tables", "scores"]

_CANCELS = np.float32(0.02)  # below this share of its cells' lengths, M's length is taken from M
_BLOCK = 1024
_NOTHING = np.float32(-math.inf)
_ONE = 2.0**40  # what one counts as where shares are added up as whole numbers


class Grouped(NamedTuple):
    """Cells by label, as :class:`labelmem.engines.numba.label_tables.Groups` has them."""

    v: Any
    """(K+, d)."""
    place: Any
    """(K,) of as many cells as there are."""
    member: Any
    known: Any
    gram: Any
    room: Any


@kernel
def _products(v: Any, unit: Any, place: Any, dot: Any) -> None:
    """Of the cells with a vector (d,), each put at the cell's ``place`` (K,) in the table ``dot``.

    Here the cells are waited for; to pick the products up by label afterwards takes its own time.
    """
    for i in range(len(place)):
        found = np.float32(0.0)
        for j in range(len(unit)):
            found += v[i, j] * unit[j]
        dot[place[i]] = found


@kernel
def _exponents(nothing: Any, dot: Any, inverse: Any, lam: np.float32, x: Any, top: Any) -> None:
    """Eq. 2's exponents for one cell of each label (Y,), and the largest so far."""
    for y in range(len(x)):  # where there is no cell an earlier read may have left anything
        dot[y] = dot[y] if nothing[y] == 0 else np.float32(0.0)
    for y in range(len(x)):
        x[y] = lam * dot[y] * inverse[y] + nothing[y]
    for y in range(len(x)):
        top[y] = max(top[y], x[y])


@kernel
def _powers(x: Any, top: Any, whole: Any) -> None:
    """Their exponentials, and the sums so far."""
    for y in range(len(x)):
        x[y] = exp(x[y] - top[y])
    for y in range(len(x)):
        whole[y] += x[y]


@kernel
def _add(share: Any, values: Any, out: Any) -> None:
    for y in range(len(out)):
        out[y] += share[y] * values[y]


@kernel
def _squares(times: np.float32, a: Any, b: Any, gram: Any, square: Any, reach: Any) -> None:
    """Add to the squared lengths of M (Y,), and to what they would be if nothing cancelled."""
    for y in range(len(square)):
        both = times * a[y] * b[y] * gram[y]
        square[y] += both
        reach[y] += abs(both)


@kernel
def _true_square(v: Any, member: Any, share: Any, y: int) -> np.float32:
    """The squared length of a label's M, added up."""
    square = np.float32(0.0)
    for j in range(v.shape[1]):
        entry = np.float32(0.0)
        for t in range(len(member)):
            if member[t, y] >= 0:
                entry += share[t, y] * v[member[t, y], j]
        square += entry * entry
    return square


@kernel
def log_scores(cosine: Any, strength: Any, lam: np.float32, delta: np.float32, score: Any) -> None:
    """Eq. 3 up to the softmax."""
    for y in range(len(score)):
        score[y] = lam * cosine[y] + delta * log(max(strength[y], TINY))


@kernel
def scores(x: Any) -> None:
    """Softmax over the labels, in place.

    Added up as whole numbers, whose sum is the same in any order: a saved stream forgets that of
    the columns.
    """
    top, whole = largest(x), np.int64(0)
    for y in range(len(x)):
        x[y] = exp(x[y] - top)
    for y in range(len(x)):
        whole += np.int64(x[y] * np.float32(_ONE))
    inverse = np.float32(_ONE / whole)
    for y in range(len(x)):
        x[y] *= inverse


@kernel
def _read_block(
    v: Any,
    member: Any,
    known: Any,
    gram: Any,
    dot: Any,
    first: int,
    lam: np.float32,
    shares: Any,
    strength: Any,
    cosine: Any,
    size: Any,
) -> None:
    """Eq. 2 for the labels (Y,) from the column ``first`` on."""
    labels, most, zero = len(size), len(member), np.float32(0.0)
    end = first + labels
    nothing, inverse, alpha = known[0], known[1], known[2]
    top, whole = np.full(labels, _NOTHING), np.full(labels, zero)
    for t in range(most):
        of_cell = (nothing[t, first:end], dot[t, first:end], inverse[t, first:end])
        _exponents(*of_cell, lam, shares[t, first:end], top)
    for t in range(most):
        _powers(shares[t, first:end], top, whole)
    reach = top
    for x in (strength, cosine, size, reach):
        fill(x, zero)
    for t in range(most):
        share = shares[t, first:end]
        for y in range(labels):
            share[y] /= whole[y]
        _add(share, alpha[t, first:end], strength)
        _add(share, dot[t, first:end], cosine)
        _squares(np.float32(1.0), share, share, gram[t, t, first:end], size, reach)
        for u in range(t):
            other, between = shares[u, first:end], gram[t, u, first:end]
            _squares(np.float32(2.0), share, other, between, size, reach)
    for y in range(labels):
        # Where a label's cells cancel, little is left of the products but their rounding.
        if size[y] < _CANCELS * reach[y]:
            size[y] = _true_square(v, member, shares, first + y)
    for y in range(labels):
        size[y] = np.float32(math.sqrt(max(size[y], zero)))
    for y in range(labels):
        cosine[y] = cosine[y] / size[y] if size[y] > 0 else zero


@kernel
def read_tables(
    cells: Grouped, h: Any, lam: np.float32, delta: np.float32, shares: Any, of_labels: Any
) -> None:
    """All of :func:`read_groups` up to the softmax over the labels."""
    strength, cosine, size, score = of_labels[0], of_labels[1], of_labels[2], of_labels[3]
    member, labels = cells.member, len(score)
    _products(cells.v, direction(h), cells.place, cells.room)
    dot = cells.room[: member.size].reshape(member.shape)
    share = shares[: member.size].reshape(member.shape)
    for first in range(0, labels, _BLOCK):
        end = min(first + _BLOCK, labels)
        told = (share, strength[first:end], cosine[first:end], size[first:end])
        _read_block(cells.v, member, cells.known, cells.gram, dot, first, lam, *told)
        log_scores(cosine[first:end], strength[first:end], lam, delta, score[first:end])


@kernel
def read_groups(
    cells: Grouped, h: Any, lam: float, delta: float, shares: Any, of_labels: Any
) -> None:
    """Eq. 2 and 3: the cells' ``shares`` at their places, ``of_labels`` (4, Y) all the rest.

    That is their alpha, the cosine of h with M, the length of M, and s.
    """
    read_tables(cells, h, np.float32(lam), np.float32(delta), shares, of_labels)
    if of_labels.shape[1]:
        scores(of_labels[3])
