"""Kernels of the stream combiner for many streams: a range of them at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import copy, fill, kernel_of_rows
from labelmem.engines.numba.rows import Rows
from labelmem.engines.numba.stream import Cells, best_of, follow, weigh

__all__ = ["follow_rows", "weigh_rows"]


@kernel_of_rows
def weigh_rows(
    first: int,
    end: int,
    w: Any,
    rows: Rows,
    read: Any,
    logits: Any,
    h: Any,
    state: Any,
    correct: bool,
    width: int,
    guess: Any,
    final: Any,
    theta: Any,
    next_mu: Any,
    best: Any,
) -> None:
    """Eq. 4 of each stream: first guess and final scores (n, K), theta, mu, the model's own label.

    ``read`` is what :func:`labelmem.engines.numba.rows.read_rows` found, ``state`` mu, echo and
    past; ``h`` has no columns if it is not seen.
    """
    (mu, echo, past), (cosine, parts, score) = state, read
    r, spare = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(first, end):
        k = rows.used[i]
        fill(guess[i, k:], np.float32(0.0))
        fill(final[i, k:], np.float32(0.0))
        cells = Cells(
            rows.label[i, :k],
            score[i, :k],
            rows.alpha[i, :k],
            rows.written[i, :k],
            rows.born[i, :k],
            rows.writes[i, :k],
            rows.rates[i, :k],
            rows.size[i, :k],
            parts[i, :k] if len(parts) else cosine[i, :k].reshape((k, 1)),
        )
        own = (mu[i], echo[i], past[i])
        seen = (w, cells, logits[i], h[i], own, rows.time[i], rows.log_fades, correct)
        theta[i] = weigh(*seen, r, spare, guess[i, :k], final[i, :k], next_mu[i])
        best[i] = best_of(r)


@kernel_of_rows
def follow_rows(
    first: int,
    end: int,
    rows: Rows,
    y: Any,
    mask: Any,
    guess: Any,
    best: Any,
    next_mu: Any,
    fades: Any,
    old: Any,
    new: Any,
) -> None:
    """The next states, mu, echo and past, of the streams of the mask; the others keep the old."""
    (old_mu, old_echo, old_past), (mu, echo, past) = old, new
    for i in range(first, end):
        if not mask[i]:
            copy(old_mu[i], mu[i])
            copy(old_echo[i], echo[i])
            copy(old_past[i], past[i])
            continue
        copy(next_mu[i], mu[i])
        k = rows.used[i]
        names, written, now = rows.label[i, :k], rows.written[i, :k], rows.time[i]
        told = old_past[i], past[i], echo[i]
        follow(guess[i, :k], names, written, now, best[i], y[i], told[0], fades, told[1], told[2])
