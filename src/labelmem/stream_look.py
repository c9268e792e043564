"""What a stream combiner sees of a step: numbers of the stream, and of each label in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labelmem.combining import View
from labelmem.errors import ConfigError
from labelmem.memory import LabelPast, MemoryRead

__all__ = ["FEATURES", "GROUPS", "LOWEST", "SIGNALS", "Look", "Spread"]
__all__ += ["blind_columns", "log", "look_at", "slot_of"]

LOWEST = -15.0
"""Logarithms of probabilities are cut here."""
FEATURES, SIGNALS = 7, 19
"""Columns of labels and of the stream, beside two for each part of the key."""
GROUPS = {
    "recency": ((1, 2, 4, 5, 6), (16, 17, 18)),
    "match": ((), ()),
    "model": ((3,), (3, 4, 5, 6, 9, 10, 12)),
    "novelty": ((), (11, 13, 14, 15)),
}
"""Columns of labels and of the stream by what they tell: how recent, regular and repeated labels
are; how well the parts of the key match (the columns behind the others); what the model believes
and whether it missed; how many labels were new lately."""


@dataclass(frozen=True)
class Look:
    """What a step shows before its label is known; none of it is learned.

    Dimensions in front may be (n,) or (n, T): nothing in the network depends on them.
    """

    features: Tensor
    """(…, K, F) of the labels in memory."""
    signals: Tensor
    """(…, U) of the stream."""
    base: Tensor
    """(…, K) log s of Eq. 3."""
    leads: Tensor
    """(…, K) which positions carry a label."""


@torch.no_grad()
def look_at(past: Tensor, view: View) -> Look:
    """All that the network sees of a step, each number of the order of one."""
    read = view.read
    assert read.past is not None
    leads = read.leads
    base = log(read.score)
    match = (read.past.cosine * read.past.size).clamp(min=0) * leads[..., None]
    r = view.r.gather(1, read.label.clamp(min=0)) * leads
    features = _features(read, read.past, r, match) * leads[..., None]
    return Look(features, _signals(past, view, r, match), base, leads)


def slot_of(read: MemoryRead, y: Tensor) -> Tensor:
    """The leading position (n,) of the labels y (n,), -1 where memory has no cell of them."""
    own = read.leads & (read.label == y[:, None])
    if not own.shape[1]:
        return torch.full_like(y, -1)
    return torch.where(own.any(dim=1), own.to(torch.int8).argmax(dim=1), -1)


def _features(read: MemoryRead, past: LabelPast, r: Tensor, match: Tensor) -> Tensor:
    """(n, K, F) of the labels in memory, at their leading cells; ``r`` is the model's of these."""
    age = past.age.to(match.dtype).clamp(min=1)
    writes = past.writes.to(match.dtype)
    # How long the label usually stays away, against how long it is away now.
    usual = ((past.since_first - past.age).to(match.dtype) / (writes - 1).clamp(min=1)).clamp(min=1)
    regular = (usual.log() - age.log()) * (writes > 1)
    own = [
        read.strength.clamp(min=1e-3).log(),
        age.log() / 2,
        (age < 2).to(match.dtype),
        log(r) / 5,
        regular / 2,
    ]
    rates = (past.rates + 0.01).log() / 2
    return torch.cat([torch.stack(own, dim=2), rates, past.cosine, match.log1p()], dim=2)


def _signals(past: Tensor, view: View, inside: Tensor, match: Tensor) -> Tensor:
    """(n, U) of the streams; ``inside`` (n, K) is r of the labels in memory."""
    r, s, leads = view.r, view.read.score, view.read.leads
    labels = leads.sum(dim=1, keepdim=True).to(r.dtype)
    holds = (labels > 0).to(r.dtype)
    overlap = inside.sum(dim=1, keepdim=True)
    # The entropy of what r says about other labels, without a pass over them.
    left, entropy = (1 - overlap).clamp(min=1e-6), _entropy(r)
    rest = ((entropy - _entropy(inside)) / left + left.log()).clamp(min=0)
    now = [
        (past[:, :1] + 1).log() / 3,
        (labels + 1).log() / 3,
        holds,
        entropy / 5,
        _log_max(r) / 3,
        rest / 5,
        (_log_max(_without(r, view.read)) - left.log()).clamp(max=0) / 3,
        _entropy(s) / 2,
        _log_max(s) * holds / 2,
        overlap,
        left.log() / 5,
    ]
    assert view.read.past is not None
    cosine = view.read.past.cosine.masked_fill(~leads[..., None], -1.0)
    best = cosine.amax(dim=1) * holds if cosine.shape[1] else cosine.sum(dim=1)
    return torch.cat([*now, past[:, 1:], best, match.sum(dim=1).log1p() / 2], dim=1)


def _without(r: Tensor, read: MemoryRead) -> Tensor:
    """R (n, W) with the labels in memory set to zero."""
    padded = nn.functional.pad(r, (0, 1))
    return padded.scatter(1, torch.where(read.leads, read.label, r.shape[1]), 0.0)


def blind_columns(blind: Sequence[str], parts: int) -> tuple[list[int], list[int]]:
    """The columns of labels and of the stream that are not seen, with a key of so many parts.

    Examples
    --------
    >>> blind_columns(["novelty", "match"], parts=1)
    ([7, 8], [11, 13, 14, 15, 19, 20])
    """
    columns: tuple[list[int], list[int]] = [], []
    for group in blind:
        if group not in GROUPS:
            raise ConfigError(f"blind to {group!r}; there are {', '.join(GROUPS)}")
        for known, found, first in zip(GROUPS[group], columns, (FEATURES, SIGNALS), strict=True):
            found += range(first, first + 2 * parts) if group == "match" else known
    return columns


class Spread:
    """Mean and spread of rows that come in parts."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums: Tensor | None = None

    def add(self, rows: Tensor) -> None:
        """Take in rows (N, C)."""
        rows = rows.double()
        sums = torch.stack([rows.sum(0), (rows**2).sum(0)])
        self._sums = sums if self._sums is None else self._sums + sums
        self.rows += len(rows)

    def found(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (C,); what hardly varies is not blown up."""
        assert self._sums is not None
        mean, square = self._sums / self.rows
        return mean, (square - mean**2).clamp(min=0).sqrt().clamp(min=0.05)


def log(p: Tensor) -> Tensor:
    """The logarithm of probabilities, cut where nothing is left to tell."""
    return p.clamp(min=1e-30).log().clamp(min=LOWEST)


def _log_max(p: Tensor) -> Tensor:
    return log(p.amax(dim=1, keepdim=True)) if p.shape[1] else p.new_zeros(p.shape[0], 1)


def _entropy(p: Tensor) -> Tensor:
    return -(p * log(p)).sum(dim=1, keepdim=True)
