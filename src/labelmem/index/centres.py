"""Centres that cells gather about: k-means by cosine."""

from __future__ import annotations

import numpy as np
import torch

from labelmem.fast import Array

__all__ = ["centres_of", "nearest", "unit"]

_EACH = 50  # cells per list from which the centres are found; more change little
_ROUNDS = 8
_AT_ONCE = 2**14  # cells that are compared with all centres at once, to bound what that takes


def unit(v: Array) -> Array:
    """Rows (k, d) scaled to length one; a zero row stays zero.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    length = np.sqrt(np.einsum("kd,kd->k", v, v))
    scaled: Array = v / np.where(length > 0, length, 1)[:, None]
    return scaled


def nearest(v: Array, centres: Array) -> Array:
    """(k,) the centre with the largest cosine for each row of ``v`` (k, d).

    Examples
    --------
    >>> nearest(np.array([[9.0, 1.0], [0.0, 0.1]]), np.eye(2)).tolist()
    [0, 1]
    """
    found = np.empty(len(v), np.int32)
    for first in range(0, len(v), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        found[rows] = (v[rows] @ centres.T).argmax(axis=1)  # a row's length changes no order
    return found


def centres_of(v: Array, lists: int) -> Array:
    """(lists, d) unit vectors that the cells ``v`` (k, d) gather about; k is at least ``lists``.

    The same cells give the same centres. A centre that no cell is nearest to stays where it was.
    """
    generator = np.random.default_rng(0)
    some = np.sort(generator.permutation(len(v))[: _EACH * lists])
    cells = unit(v[some])
    centres = cells[np.sort(generator.permutation(len(cells))[:lists])]
    for _ in range(_ROUNDS):
        home = torch.from_numpy(nearest(cells, centres))
        total = torch.zeros_like(torch.from_numpy(centres))
        moved = unit(total.index_add_(0, home, torch.from_numpy(cells)).numpy())
        centres = np.where(moved.any(axis=1, keepdims=True), moved, centres)
    return centres
