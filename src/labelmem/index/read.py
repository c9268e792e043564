"""The read of some of one stream's cells: Eq. 2 and 3 as if there were no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.fast import TINY, Array, array, places, softmax, tensor
from labelmem.fast.crowds import LEAST_SHARE
from labelmem.reading import LabelPast, MemoryRead

__all__ = ["Some", "read_some"]


@dataclass(frozen=True)
class Some:
    """Cells of one stream that a read looks at."""

    cells: Mapping[str, Tensor]
    """The memory's tensors by name, (1, K, …)."""
    at: Array
    """(k,) the positions looked at."""
    cosine: Array
    """(k,) the cosines of the cells there with h."""
    alone: bool
    """Whether each is the only cell of its label."""
    time: int
    """The latest observation."""
    fades: Tensor
    """The factors by which the rates of writes fade."""
    blocks: Sequence[int] | None
    """The blocks of h that are compared for themselves; None if nobody asks how labels came."""

    def values(self, name: str) -> Array:
        """(k, …) what the cells have of one kind."""
        picked: Array = array(self.cells[name])[0][self.at]
        return picked


def read_some(some: Some, h: Array, lam: float, delta: float) -> MemoryRead:
    """Eq. 2 and 3 for ``h`` (d,); cells of a label lie together in what is told."""
    some = some if some.alone else _by_label(some)
    label, alpha, k = some.values("label"), some.values("alpha"), len(some.at)
    age = (some.time + 1 - some.values("written")).astype(np.int32, copy=False)
    if some.alone:
        lead, group, weight = places(k), places(k), np.ones(k, alpha.dtype)
        strength, cosine, M = alpha, some.cosine, None
    else:
        lead = np.flatnonzero(np.diff(label, prepend=-1))
        number = np.repeat(places(len(lead)), np.diff(lead, append=k))
        group, weight = lead[number], _shares(lam * some.cosine, lead, number)
        strength = np.add.reduceat(weight * alpha, lead)
        M = _sums(some, weight, lead)
        cosine = _cosine(M, h)
    log_strength = np.log(np.maximum(strength, TINY[strength.dtype]))
    score = softmax(lam * cosine + delta * log_strength)

    def at_lead(values: Array) -> Tensor:
        if some.alone:
            return tensor(values)
        spread = np.zeros((k, *values.shape[1:]), values.dtype)
        spread[lead] = values
        return tensor(spread)

    past = None
    if some.blocks is not None:
        told = _past(some, h, age, lead, M, some.blocks)
        past = LabelPast(*(at_lead(values) for values in told))
    return MemoryRead(
        label=tensor(label),
        alpha=tensor(alpha),
        weight=tensor(weight),
        score=at_lead(score),
        group=tensor(group),
        strength=at_lead(strength),
        cosine=at_lead(cosine),
        age=tensor(age),
        past=past,
    )


def _by_label(some: Some) -> Some:
    """The same cells in the order of their labels."""
    # A label and a place in one number: numbers are sorted faster than places are by numbers.
    order = np.sort(some.values("label") << 32 | places(len(some.at))) & (2**32 - 1)
    rest = (some.alone, some.time, some.fades, some.blocks)
    return Some(some.cells, some.at[order], some.cosine[order], *rest)


def _shares(x: Array, lead: Array, number: Array) -> Array:
    """Eq. 2's softmax within each label."""
    x = np.exp(x - np.maximum.reduceat(x, lead)[number])
    shares: Array = x / np.add.reduceat(x, lead)[number]
    return shares


def _sums(some: Some, weight: Array, lead: Array) -> Array:
    """Eq. 2's M of each label (Y, d), from the cells where they lie: they are not copied."""
    v, counts = some.cells["v"][0], weight >= LEAST_SHARE
    first = torch.from_numpy(np.concatenate(([0], np.cumsum(counts)))[lead])
    at, share = torch.from_numpy(some.at[counts]), torch.from_numpy(weight[counts])
    M = torch.nn.functional.embedding_bag(at, v, first, mode="sum", per_sample_weights=share)
    return array(M)


def _cosine(M: Array, h: Array) -> Array:
    length = np.sqrt(h @ h)
    size = np.sqrt(np.einsum("kd,kd->k", M, M))
    cosine: Array = M @ (h / length if length > 0 else h) / np.where(size > 0, size, 1)
    return cosine


def _past(
    some: Some, h: Array, age: Array, lead: Array, M: Array | None, blocks: Sequence[int]
) -> tuple[Array, ...]:
    """How the labels (Y, …) came so far, as far as these cells know."""
    gone = np.maximum(age - 1, 0)[:, None]
    writes, first = some.values("writes"), some.time + 1 - some.values("born")
    rates = some.values("rates") * array(some.fades) ** gone
    if M is None:
        M = some.values("v")
    else:
        writes = np.add.reduceat(writes, lead, dtype=writes.dtype)
        first, age = np.maximum.reduceat(first, lead), np.minimum.reduceat(age, lead)
        rates = np.add.reduceat(rates, lead, axis=0)
    cosine, size = F.block_cosine(tensor(h), tensor(M), blocks or (len(h),))
    return writes, age, first, rates, array(cosine)[0], array(size)[0]
