"""Kernels for labels with many cells: their M is made, by a second pass over their cells.

Cells are passed over in the order in which they lie, whichever label they belong to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import dot, exp, kernel
from labelmem.engines.numba.groups import Grouped, log_scores, read_tables, scores
from labelmem.engines.numba.read import TINY

__all__ = ["read_crowded"]

# Shares below it are left out of M: those of a million cells are less than its rounding.
_LEAST = np.float32(1e-12)


@kernel
def _shares(
    of_cell: Any, length: Any, product: Any, lam: np.float32, share: Any, crowds: int
) -> None:
    """Eq. 2's shares of the cells (K,) that belong to one of the crowds."""
    top, whole = np.full(crowds, np.float32(-math.inf)), np.full(crowds, np.float32(0.0))
    for i in range(len(of_cell)):
        crowd = of_cell[i]
        if crowd >= 0:
            share[i] = lam * product[i] / max(length[i], TINY)
            top[crowd] = max(top[crowd], share[i])
    for i in range(len(of_cell)):
        crowd = of_cell[i]
        if crowd >= 0:
            share[i] = exp(share[i] - top[crowd])
            whole[crowd] += share[i]
    for i in range(len(of_cell)):
        if of_cell[i] >= 0:
            share[i] /= whole[of_cell[i]]


@kernel
def _sums(
    of_cell: Any, share: Any, alpha: Any, product: Any, v: Any, M: Any, strength: Any, with_h: Any
) -> None:
    """Eq. 2's M (C, d) and alpha (C,), and the products of M with h (C,); all begin at zero."""
    for i in range(len(of_cell)):
        if of_cell[i] >= 0:
            # Without a sign: of that it is known that nothing is counted from the end.
            crowd, own = np.uintp(of_cell[i]), share[i]
            strength[crowd] += own * alpha[i]
            with_h[crowd] += own * product[i]
            if own >= _LEAST:
                for j in range(M.shape[1]):
                    M[crowd, j] += own * v[i, j]


@kernel
def read_crowded(
    of_cell: Any,
    columns: Any,
    length: Any,
    alpha: Any,
    cells: Grouped,
    h: Any,
    lam: float,
    delta: float,
    shares: Any,
    of_labels: Any,
) -> None:
    """What ``read_groups`` does, where some labels have more cells than its tables have rows.

    ``of_cell`` (K,), ``columns`` (C,) and ``length`` (K+,) are those of
    :class:`labelmem.engines.numba.label_crowds.Crowds`, ``alpha`` (K+,) the weights of the cells.
    """
    lam32, delta32, crowds = np.float32(lam), np.float32(delta), len(columns)
    read_tables(cells, h, lam32, delta32, shares, of_labels)
    product, share = cells.room[cells.member.size :], shares[cells.member.size :]
    _shares(of_cell, length, product, lam32, share, crowds)
    M, found = np.zeros((crowds, len(h)), np.float32), np.zeros((4, crowds), np.float32)
    _sums(of_cell, share, alpha, product, cells.v, M, found[0], found[1])
    for crowd in range(crowds):
        size = np.float32(math.sqrt(dot(M[crowd], M[crowd])))
        found[1, crowd] = found[1, crowd] / size if size > 0 else np.float32(0.0)
        found[2, crowd] = size
    log_scores(found[1], found[0], lam32, delta32, found[3])
    for crowd in range(crowds):
        for i in range(4):
            of_labels[i, columns[crowd]] = found[i, crowd]
    scores(of_labels[3])
