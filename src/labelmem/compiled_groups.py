"""A kernel that reads several cells per label: what ``fast_groups.py`` says, in one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.compiled import exp, fill, kernel, log, softmax
from labelmem.compiled_read import TINY

__all__ = ["read_groups"]

_CANCELS = np.float32(0.02)  # below this share of its cells' lengths, M's length is taken from M


@kernel
def _cosines(v: Any, length: Any, h: Any, product: Any, cosine: Any) -> None:
    """Of all cells (K,) with ``h``: products with it at length one, and cosines."""
    size, unit = np.float32(0.0), np.empty(len(h), np.float32)
    for j in range(len(h)):
        size += h[j] * h[j]
    size = np.float32(math.sqrt(size))
    for j in range(len(h)):
        unit[j] = h[j] / size if size > 0 else h[j]
    for i in range(len(product)):
        found = np.float32(0.0)
        for j in range(len(unit)):
            found += v[i, j] * unit[j]
        product[i] = found
    for i in range(len(product)):
        cosine[i] = product[i] / max(length[i], TINY)


@kernel
def _true_length(v: Any, member: Any, y: int, share: Any) -> np.float32:
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
def read_groups(
    v: Any,
    length: Any,
    alpha: Any,
    member: Any,
    gram: Any,
    lead: Any,
    h: Any,
    lam: float,
    delta: float,
    weight: Any,
    strength: Any,
    cosine: Any,
    size: Any,
    score: Any,
) -> None:
    """Eq. 2 and 3: of cells their ``weight`` (K,), of labels (Y,) all the rest.

    ``member`` (T, Y+) has the positions of the labels' cells, -1 after the last, ``gram``
    (T, T, Y+) their products with each other.
    """
    k, labels, most = len(weight), len(score), len(member)
    lam32, delta32, zero = np.float32(lam), np.float32(delta), np.float32(0.0)
    product, cell_cosine = np.empty(k, np.float32), np.empty(k, np.float32)
    _cosines(v, length, h, product, cell_cosine)
    # One row of cells after another, each loop along all labels.
    share, top = np.empty((most, labels), np.float32), np.empty(labels, np.float32)
    fill(top, np.float32(-math.inf))
    for t in range(most):
        for y in range(labels):
            cell = member[t, y]
            share[t, y] = lam32 * cell_cosine[cell] if cell >= 0 else np.float32(-math.inf)
        for y in range(labels):
            top[y] = max(top[y], share[t, y])
    whole, square, reach = np.zeros(labels, np.float32), size, np.zeros(labels, np.float32)
    for t in range(most):
        for y in range(labels):
            share[t, y] = exp(share[t, y] - top[y])
            whole[y] += share[t, y]
    fill(strength, zero)
    fill(cosine, zero)
    fill(square, zero)
    for t in range(most):
        for y in range(labels):
            share[t, y] /= whole[y]
        for y in range(labels):
            cell = member[t, y]
            if cell >= 0:
                weight[cell] = share[t, y]
                strength[y] += share[t, y] * alpha[cell]
                cosine[y] += share[t, y] * product[cell]
        for y in range(labels):
            own = share[t, y] * share[t, y] * gram[t, t, y]
            square[y] += own
            reach[y] += own
        for u in range(t):
            for y in range(labels):
                both = np.float32(2.0) * share[t, y] * share[u, y] * gram[t, u, y]
                square[y] += both
                reach[y] += abs(both)
    for y in range(labels):
        # Where a label's cells cancel, little is left of the products but their rounding.
        if square[y] < _CANCELS * reach[y]:
            square[y] = _true_length(v, member, y, share)
    for y in range(labels):
        size[y] = np.float32(math.sqrt(max(square[y], zero)))
        cosine[y] = cosine[y] / size[y] if size[y] > 0 else zero
    # Added up in the order of the cells: that of the columns is forgotten by a saved stream.
    for i in range(k):
        product[i] = np.float32(-math.inf)
    for y in range(labels):
        product[lead[y]] = lam32 * cosine[y] + delta32 * log(max(strength[y], TINY))
    if k:
        softmax(product, product)
    for y in range(labels):
        score[y] = product[lead[y]]
