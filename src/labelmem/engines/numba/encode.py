"""A kernel for what comes before the memory: a history model's step, and a key of its tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

from labelmem.engines.numba import kernel
from labelmem.engines.numba.history import history_step, outputs
from labelmem.engines.numba.keys import scale, token_key

__all__ = ["HistoryArrays", "TokenArrays", "encode"]


class HistoryArrays(NamedTuple):
    """A :class:`labelmem.models.HistoryModel` that is made of averages alone."""

    table: Any
    """(L, d) the labels' vectors, which the output layer shares."""
    bias: Any
    """(L,)."""
    decays: Any
    """(G,)."""
    mix: Any
    """(G, d)."""
    norm: float
    prior: float


class TokenArrays(NamedTuple):
    """A :class:`labelmem.keys.RecentTokens`, and the share of h behind it, 0 for none."""

    directions: Any
    fade: float
    pair: bool
    share: float


@kernel
def encode(
    model: Any, key: Any, token: int, state: Any, after: Any, h: Any, logits: Any, made: Any
) -> bool:
    """What the head gets, the logits and the memory's key ``made``; whether they are finite.

    ``state`` and ``after`` are sums, weights and the tokens before.
    """
    (sums, weights, before), (next_sums, next_weights, next_before) = state, after
    known = (model.table, model.decays, model.mix, model.norm, model.prior, token)
    history_step(*known, (sums, weights), (next_sums, next_weights), h)
    fine = outputs(model.table, model.bias, h, logits)
    width, last = key.directions.shape[1], len(before) + 1
    count = last + 1 if key.pair else last
    parts = made[: count * width].reshape((count, width))
    token_key(key.directions, token, before, key.fade, key.pair, parts)
    if key.share > 0:
        scale(h, key.share, made[count * width :])
    for i in range(last - 1):
        next_before[i] = token if i == 0 else before[i - 1]
    return fine
