"""Kernels for a step of :class:`labelmem.models.HistoryModel`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.engines.numba import kernel, total

__all__ = ["history_step", "outputs"]


@kernel
def history_step(
    table: Any,
    decays: Any,
    mix: Any,
    norm: float,
    prior: float,
    token: int,
    state: Any,
    after: Any,
    h: Any,
) -> None:
    """Sums (G, d) and weights (G,), the two of ``state``, into ``after``, and ``h`` (d,).

    ``token`` is a row of ``table`` (L, d), or L for the start of a stream, which counts for
    nothing; ``mix`` (G, d) are factors.
    """
    (sums, weights), (next_sums, next_weights) = state, after
    counts = token < len(table)
    one, most = np.float32(1.0), np.float32(0.0)
    for g in range(len(decays)):
        next_weights[g] = decays[g] * weights[g] + (one if counts else np.float32(0.0))
        most = max(most, next_weights[g])
    share = most / (most + np.float32(prior)) if prior > 0 else one
    for j in range(len(h)):
        h[j] = 0
    for g in range(len(decays)):
        factor = share * max(next_weights[g], one) ** np.float32(-norm)
        for j in range(len(h)):
            now = decays[g] * sums[g, j]
            if counts:
                now += table[token, j]
            next_sums[g, j] = now
            h[j] += mix[g, j] * now * factor


@kernel
def outputs(weight: Any, bias: Any, h: Any, out: Any) -> bool:
    """A linear layer: ``weight`` (L, d) times ``h`` (d,) plus ``bias``, into ``out`` (L,).

    Whether their sum is finite: then all of them are.
    """
    # Four rows at once: each number of h is loaded once for them.
    fours = len(out) - len(out) % 4
    for i in range(0, fours, 4):
        a, b, c, d = bias[i], bias[i + 1], bias[i + 2], bias[i + 3]
        for j in range(len(h)):
            a += weight[i, j] * h[j]
            b += weight[i + 1, j] * h[j]
            c += weight[i + 2, j] * h[j]
            d += weight[i + 3, j] * h[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(fours, len(out)):
        a = bias[i]
        for j in range(len(h)):
            a += weight[i, j] * h[j]
        out[i] = a
    return bool(math.isfinite(total(out)))
