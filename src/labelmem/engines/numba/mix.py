"""Kernels of Eq. 1 and 5 for one stream: the model's belief, and its mixture with the memory's."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmem.engines.numba import copy, fill, inlined, kernel, softmax, total

__all__ = ["believe", "mix", "mix_each", "mix_fixed"]


@inlined
def believe(logits: Any, r: Any) -> tuple[np.float32, np.float32]:
    """Eq. 1 into ``r`` (W,), zero beyond the model's labels; what the softmax says."""
    known = len(logits)
    fill(r[known:], np.float32(0.0))
    return softmax(logits, r[:known])


@inlined
def _base(r: Any, names: Any, score: Any, partition: bool, P: Any) -> bool:
    """What of r is mixed, into ``P``; whether the memory has anything to say."""
    holds = False
    copy(r, P)
    for i in range(len(names)):
        if score[i] > 0:
            holds = True
            if partition:
                P[names[i]] = 0
    if partition:
        left = total(P)
        if left > 0:
            inverse = np.float32(1.0) / left
            for y in range(len(P)):
                P[y] *= inverse
    return holds


@inlined
def _spread(names: Any, score: Any, s: Any) -> None:
    """Scores (K,) of labels over all labels (W,)."""
    fill(s, np.float32(0.0))
    for i in range(len(names)):
        s[names[i]] = score[i]


@inlined
def mix(r: Any, names: Any, score: Any, theta: np.float32, partition: bool, s: Any, P: Any) -> None:
    """Eq. 5 with one theta for all labels, into ``P`` (W,); ``score`` (K,) is spread into ``s``."""
    _spread(names, score, s)
    if not _base(r, names, score, partition, P):
        return
    rest = np.float32(1.0) - theta
    whole = rest * total(P)
    for i in range(len(names)):
        whole += theta * score[i]
    if whole > 0:
        rest /= whole
        for y in range(len(P)):
            P[y] *= rest
        share = theta / whole
        for i in range(len(names)):
            P[names[i]] += share * score[i]


@kernel
def mix_each(r: Any, names: Any, score: Any, theta: Any, partition: bool, s: Any, P: Any) -> None:
    """The same with a theta for each label (W,)."""
    _spread(names, score, s)
    if not _base(r, names, score, partition, P):
        return
    whole = np.float32(0.0)
    for y in range(len(P)):
        whole += (np.float32(1.0) - theta[y]) * P[y]
    for i in range(len(names)):
        whole += theta[names[i]] * score[i]
    if whole > 0:
        inverse = np.float32(1.0) / whole
        for y in range(len(P)):
            P[y] *= (np.float32(1.0) - theta[y]) * inverse
        for i in range(len(names)):
            P[names[i]] += theta[names[i]] * inverse * score[i]


@kernel
def mix_fixed(logits: Any, names: Any, score: Any, theta: float, partition: bool, out: Any) -> None:
    """Eq. 1 and 5 with a fixed theta: P, theta, r and s are the rows of ``out`` (4, W)."""
    believe(logits, out[2])
    fill(out[1], np.float32(theta))
    mix(out[2], names, score, np.float32(theta), partition, out[3], out[0])
