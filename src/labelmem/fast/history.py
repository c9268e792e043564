"""A step of :class:`labelmem.models.HistoryModel` for one stream on a CPU."""

from __future__ import annotations

import numpy as np

from labelmem.fast import Array

__all__ = ["averages_of", "mixed", "summed"]


def summed(sums: Array, weights: Array, decays: Array, e: Array | None) -> tuple[Array, Array]:
    """Decayed sums (G, d) and their weights (G,) after one more vector ``e`` (d,).

    None is the start of a stream, which counts for nothing.

    Examples
    --------
    >>> summed(np.ones((2, 1)), np.ones(2), np.array([0.0, 1.0]), np.array([3.0]))[0]
    array([[3.],
           [4.]])
    """
    sums, weights = decays[:, None] * sums, decays * weights
    if e is not None:
        sums += e
        weights += 1
    return sums, weights


def averages_of(sums: Array, weights: Array, norm: float, prior: float) -> Array:
    """(G, d) the sums as averages; ``norm`` and ``prior`` are the model's options."""
    scale = np.maximum(weights, 1) ** -norm
    if prior:
        n = weights.max()
        scale *= n / (n + prior)
    averages: Array = sums * scale[:, None]
    return averages


def mixed(averages: Array, mix: Array) -> Array:
    """The weighted sum of averages (G, d): by factors (G, d) or by matrices (G, d, e).

    Examples
    --------
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> mixed(a, np.ones((2, 2))), mixed(a, np.ones((2, 2, 1)))
    (array([4., 6.]), array([10.]))
    """
    h: Array
    if mix.ndim == 2:
        h = np.einsum("gd,gd->d", averages, mix)
    else:
        h = averages.ravel() @ mix.reshape(averages.size, -1)
    return h
