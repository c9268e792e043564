"""What one prediction is worth: the probability and the rank of the true label, on its device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.errors import InputError

__all__ = ["FLOOR", "SUMS", "Array", "Measured", "Worth", "checked", "fetched", "measured"]
__all__ += ["ranked", "reciprocal_rank", "score", "worth_of"]

FLOOR = 1e-10
"""The least probability inside the logarithm, and nowhere else."""

Array = npt.NDArray[np.float64]
SUMS = ("tokens", "loss", "reciprocal_rank", "hits", "floored")
"""What every prediction adds to the sums of its stream."""


def reciprocal_rank(probs: Tensor, y: Tensor) -> Tensor:
    """One over the rank of the true label, (n,).

    The rank is 1 + the labels strictly above + half of the other labels that tie.

    Parameters
    ----------
    probs
        (n, W), one row for each prediction.
    y
        (n,) columns of the true labels. A column outside ``probs`` means a label that has none yet:
        it ranks as if it were appended with probability 0.

    Examples
    --------
    >>> probs = torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.6, 0.4, 0.0]])
    >>> reciprocal_rank(probs, torch.tensor([2, 0, 7]))
    tensor([0.5000, 0.6667, 0.2857])
    """
    return 1 / ranked(*checked(probs, y))[1]


class Worth(NamedTuple):
    """What n predictions are worth: all that is asked of rows of all labels as a rule."""

    figures: Tensor
    """(4, n) P of the true label, its rank, whether it comes first, and the greatest P."""
    labels: Tensor
    """(n, k) the most likely labels, the first in front."""
    probs: Tensor
    """(n, k) theirs."""


def worth_of(probs: Tensor, y: Tensor, widths: Tensor | None = None, top: int = 0) -> Worth:
    """What the rows (n, W) are worth where the labels y (n,) are true; see :class:`Worth`.

    Examples
    --------
    >>> found = worth_of(torch.tensor([[0.2, 0.5, 0.3]]), torch.tensor([2]), top=2)
    >>> found.figures[:, 0], found.labels
    (tensor([0.3000, 2.0000, 0.0000, 0.5000]), tensor([[1, 2]]))
    """
    best = probs.topk(min(top, probs.shape[1]))
    return Worth(ranked(probs, y, widths), best.indices, best.values)


@dataclass(frozen=True)
class Measured:
    """One call of update, as far as it was measured."""

    ids: Sequence[int]
    groups: Sequence[str]
    table: Tensor
    """(5 + groups, n): P(y), rank, hit, greatest P, whether the row counts, and each group."""


def measured(
    figures: Tensor, mask: Tensor | None, groups: Mapping[str, Tensor], ids: Sequence[int]
) -> Measured:
    """Measure n predictions where they lie; see ``StreamMetrics.update`` for the arguments."""
    n = figures.shape[1]
    if mask is None:
        mask = torch.ones(n, dtype=torch.bool, device=figures.device)
    flags = [_flag(f"group {name!r}", flag, n) for name, flag in groups.items()]
    rows = [flag[None].to(figures) for flag in (_flag("mask", mask, n), *flags)]
    return Measured(ids, tuple(groups), torch.cat([figures, *rows]))


def fetched(tables: Sequence[Tensor]) -> list[Array]:
    """Tables (rows, n) as arrays, those of one shape with a single transfer."""
    if len({(table.shape, table.dtype) for table in tables}) == 1:
        return list(torch.stack(list(tables)).cpu().numpy().astype(np.float64))
    return [table.cpu().numpy().astype(np.float64) for table in tables]


def score(table: Array, groups: Sequence[str]) -> tuple[npt.NDArray[np.int64], dict[str, Array]]:
    """Which rows count, and what each of them adds to every column."""
    kept = np.flatnonzero(table[4])
    p, rank, hit, top = table[:4, kept]
    _check_probabilities(p, top)
    loss = -np.log(np.maximum(p, FLOOR))
    floored = (p < FLOOR).astype(np.float64)
    values = dict(zip(SUMS, (np.ones_like(p), loss, 1 / rank, hit, floored), strict=True))
    for name, member in zip(groups, table[5:, kept], strict=True):
        values |= {f"tokens {name}": member, f"hits {name}": member * hit}
    return kept, values


def checked(probs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both as they are looked at, after a check of their forms."""
    if probs.dim() != 2 or not probs.is_floating_point():
        raise InputError(f"probs is {_seen(probs)}; expected floats of shape (n, labels)")
    if y.shape != probs.shape[:1] or y.is_floating_point() or y.dtype == torch.bool:
        raise InputError(f"y is {_seen(y)}; expected whole numbers of shape ({len(probs)},)")
    return probs.detach(), y.to(probs.device, torch.int64)


def _flag(name: str, flag: Tensor, rows: int) -> Tensor:
    if flag.shape != (rows,) or flag.dtype != torch.bool:
        raise InputError(f"{name} is {_seen(flag)}; expected torch.bool of shape ({rows},)")
    return flag


def _seen(tensor: Tensor) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}"


def ranked(probs: Tensor, y: Tensor, widths: Tensor | None = None) -> Tensor:
    """P(y), rank of y, whether y comes first, and the greatest P: (4, n) on the same device."""
    probs = probs.to(torch.float64 if probs.dtype == torch.float64 else torch.float32)
    rows, width = probs.shape
    if width == 0:  # nothing is known yet: y would be the only label, but that is no hit
        return probs.new_tensor([0, 1, 0, 0])[:, None].expand(4, rows)
    known = (y >= 0) & (y < (width if widths is None else widths))
    p = probs.gather(1, torch.where(known, y, 0)[:, None]) * known[:, None]
    # One buffer of floats for all comparisons: several times faster than sums of booleans, and
    # exact up to 16 million labels.
    buffer = torch.empty_like(probs)
    above = torch.gt(probs, p, out=buffer).sum(1)
    equal = torch.eq(probs, p, out=buffer)
    if widths is not None:
        equal.mul_(torch.arange(width, device=y.device) < widths[:, None])
    rank = 1 + above + (equal.sum(1) - known.to(probs.dtype)) / 2
    earlier = equal.mul_(torch.arange(width, device=y.device) < y[:, None]).sum(1)
    hit = known & (above == 0) & (earlier == 0)
    top = probs.amax(1)
    rank = torch.where(top.isnan(), top, rank)  # nan compares false and would rank first
    return torch.stack([p[:, 0], rank, hit.to(probs.dtype), top])


def _check_probabilities(p: Array, top: Array) -> None:
    bad = np.flatnonzero(~((p >= 0) & (top <= 1.001)))  # nan is neither
    if len(bad):
        seen = p[bad[0]] if not p[bad[0]] >= 0 else top[bad[0]]
        raise InputError(
            f"probs holds {seen}; expected probabilities between 0 and 1, not logits or logarithms"
        )
