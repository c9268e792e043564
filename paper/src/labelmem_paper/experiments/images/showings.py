"""Sequences of pictures in which a few labels are shown twice each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelmem.errors import ConfigError

__all__ = ["Showings", "again", "draw_showings", "numbered"]


@dataclass(frozen=True)
class Showings:
    """Which picture comes when in ``n`` sequences of T steps."""

    label: Tensor
    """(n, T) its character."""
    drawing: Tensor
    """(n, T) which of the character's drawings."""

    @property
    def second(self) -> Tensor:
        """(n, T) whether the label was shown before in its sequence."""
        return again(self.label)

    def of(self, pictures: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The sequences as recorded streams of ``pictures`` (characters, drawings, …)."""
        x = pictures[self.label.to(pictures.device), self.drawing.to(pictures.device)]
        return list(zip(x, self.label, strict=True))


def again(label: Tensor) -> Tensor:
    """(n, T) whether a label (n, T) came earlier in its row.

    Examples
    --------
    >>> again(torch.tensor([[4, 7, 4, 4]]))
    tensor([[False, False,  True,  True]])
    """
    same = label[:, :, None] == label[:, None, :]
    return same.tril(diagonal=-1).any(dim=2)


def numbered(label: Tensor) -> Tensor:
    """Labels (n, T) numbered in the order of their first showing, row by row.

    Examples
    --------
    >>> numbered(torch.tensor([[4, 7, 4, 2]]))
    tensor([[0, 1, 0, 2]])
    """
    same = label[:, :, None] == label[:, None, :]
    first = same.to(torch.int8).argmax(dim=2)
    is_first = first == torch.arange(label.shape[1], device=label.device)
    return (is_first.cumsum(dim=1) - 1).gather(1, first)


def draw_showings(shown: Tensor, count: int, labels: int, times: int, seed: int) -> Showings:
    """Draw sequences: some labels, each shown several times by different drawings, all shuffled.

    Parameters
    ----------
    shown
        (characters, drawings) which drawings may be shown; a character without ``times`` of them is
        never drawn.
    count, labels, times
        How many sequences, labels in each, and showings of each label.

    Examples
    --------
    >>> drawn = draw_showings(torch.ones(9, 4, dtype=torch.bool), 2, labels=3, times=2, seed=0)
    >>> drawn.label.shape, drawn.second.sum(dim=1)
    (torch.Size([2, 6]), tensor([3, 3]))
    """
    may = shown.cpu().numpy()
    pool = np.flatnonzero(may.sum(axis=1) >= times)
    if len(pool) < labels:
        raise ConfigError(
            f"{len(pool)} characters have {times} drawings to show; a sequence needs {labels}"
        )
    rng = np.random.default_rng(seed)
    label = np.stack([rng.permutation(pool)[:labels] for _ in range(count)])
    # The drawings of a character in a random order, those that may be shown first.
    order = rng.random((count, labels, may.shape[1])) + ~may[label]
    drawing = order.argsort(axis=2)[:, :, :times].reshape(count, -1)
    place = rng.random(drawing.shape).argsort(axis=1)
    label = np.take_along_axis(np.repeat(label, times, axis=1), place, axis=1)
    drawing = np.take_along_axis(drawing, place, axis=1)
    return Showings(torch.from_numpy(label), torch.from_numpy(drawing))
