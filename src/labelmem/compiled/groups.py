"""Kernels that read several cells per label: what ``fast/groups.py`` says, in one call.

Labels are read a block at a time, so that what is known of them halfway stays in the nearest cache.
Loops are small and each knows few arrays: only then does it run on many lanes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import exp, fill, kernel, largest, log
from labelmem.compiled.read import TINY, direction, products, unit_of

__all__ = ["read_groups"]

_CANCELS = np.float32(0.02)  # below this share of its cells' lengths, M's length is taken from M
_BLOCK = 512
_NOTHING = np.float32(-math.inf)
_ONE = 2.0**40  # what one counts as where shares are added up as whole numbers


@kernel
def _pick(
    cells: Any, product: Any, length: Any, alpha: Any, dot: Any, size: Any, strength: Any
) -> None:
    """What is known of one cell of each label (Y,); what is scattered is picked up once.

    Where there is no cell, of any one: its share is zero, and to ask whether it is there takes
    longer.
    """
    for y in range(len(dot)):
        cell = max(cells[y], 0)
        dot[y], size[y], strength[y] = product[cell], length[cell], alpha[cell]


@kernel
def _exponents(cells: Any, dot: Any, size: Any, lam: np.float32, x: Any, top: Any) -> None:
    """Eq. 2's exponents for one cell of each label (Y,), and the largest so far."""
    for y in range(len(x)):
        x[y] = lam * dot[y] / max(size[y], TINY)
    for y in range(len(x)):
        x[y] = x[y] if cells[y] >= 0 else _NOTHING
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
def _spread(cells: Any, share: Any, weight: Any) -> None:
    """The shares of the cells where they lie."""
    for y in range(len(cells)):
        if cells[y] >= 0:
            weight[cells[y]] = share[y]


@kernel
def _squares(times: np.float32, a: Any, b: Any, gram: Any, square: Any, reach: Any) -> None:
    """Add to the squared lengths of M (Y,), and to what they would be if nothing cancelled."""
    for y in range(len(square)):
        both = times * a[y] * b[y] * gram[y]
        square[y] += both
        reach[y] += abs(both)


@kernel
def _true_square(v: Any, dim: int, member: Any, y: int, held: Any, at: int) -> np.float32:
    """The squared length of a label's M, added up."""
    square = np.float32(0.0)
    for j in range(dim):
        entry = np.float32(0.0)
        for t in range(len(member)):
            cell = member[t, y]
            if cell >= 0:
                entry += held[t, at] * unit_of(v, cell, dim) * np.float32(v[cell, j])
        square += entry * entry
    return square


@kernel
def _log_scores(cosine: Any, strength: Any, lam: np.float32, delta: np.float32, score: Any) -> None:
    """Eq. 3 up to the softmax."""
    for y in range(len(score)):
        score[y] = lam * cosine[y] + delta * log(max(strength[y], TINY))


@kernel
def _scores(x: Any) -> None:
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
    dim: int,
    product: Any,
    length: Any,
    alpha: Any,
    member: Any,
    gram: Any,
    first: int,
    lam: np.float32,
    spare: Any,
    weight: Any,
    strength: Any,
    cosine: Any,
    size: Any,
) -> None:
    """Eq. 2 for the labels (Y,) from the column ``first`` on; ``spare`` (3, T, Y+) is used up."""
    labels, most, zero = len(size), len(member), np.float32(0.0)
    held, dots, strengths = spare[0], spare[1], spare[2]
    end = first + labels
    top, whole = np.full(labels, _NOTHING), np.empty(labels, np.float32)
    for t in range(most):
        cells, dot, strong = member[t, first:end], dots[t, :labels], strengths[t, :labels]
        _pick(cells, product, length, alpha, dot, whole, strong)
        _exponents(cells, dot, whole, lam, held[t, :labels], top)
    fill(whole, zero)
    for t in range(most):
        _powers(held[t, :labels], top, whole)
    reach = top
    for x in (strength, cosine, size, reach):
        fill(x, zero)
    for t in range(most):
        share = held[t, :labels]
        for y in range(labels):
            share[y] /= whole[y]
        _spread(member[t, first:end], share, weight)
        _add(share, strengths[t, :labels], strength)
        _add(share, dots[t, :labels], cosine)
        _squares(np.float32(1.0), share, share, gram[t, t, first:end], size, reach)
        for u in range(t):
            between = gram[t, u, first:end]
            _squares(np.float32(2.0), share, held[u, :labels], between, size, reach)
    for y in range(labels):
        # Where a label's cells cancel, little is left of the products but their rounding.
        if size[y] < _CANCELS * reach[y]:
            size[y] = _true_square(v, dim, member, first + y, held, y)
    for y in range(labels):
        size[y] = np.float32(math.sqrt(max(size[y], zero)))
    for y in range(labels):
        cosine[y] = cosine[y] / size[y] if size[y] > 0 else zero


@kernel
def read_groups(
    v: Any,
    length: Any,
    alpha: Any,
    member: Any,
    gram: Any,
    h: Any,
    lam: float,
    delta: float,
    product: Any,
    weight: Any,
    of_labels: Any,
) -> None:
    """Eq. 2 and 3: of cells their ``weight`` (K,), ``of_labels`` (4, Y) all the rest.

    That is their alpha, the cosine of h with M, the length of M, and s. ``member`` (T, Y+) has the
    positions of the labels' cells, -1 after the last, ``gram`` (T, T, Y+) their products with each
    other. ``product`` (K,) is used up.
    """
    strength, cosine, size, score = of_labels[0], of_labels[1], of_labels[2], of_labels[3]
    k, labels, dim = len(weight), len(score), len(h)
    lam32, delta32 = np.float32(lam), np.float32(delta)
    products(v, direction(h), product)
    if v.shape[1] > dim:
        for i in range(k):
            product[i] *= unit_of(v, i, dim)
    spare = np.empty((3, len(member), _BLOCK), np.float32)
    for first in range(0, labels, _BLOCK):
        end = min(first + _BLOCK, labels)
        told = (weight, strength[first:end], cosine[first:end], size[first:end])
        _read_block(v, dim, product, length, alpha, member, gram, first, lam32, spare, *told)
        _log_scores(cosine[first:end], strength[first:end], lam32, delta32, score[first:end])
    if labels:
        _scores(score)
