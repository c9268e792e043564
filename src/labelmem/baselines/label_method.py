"""Methods that look at labels only, and fall back on how often each came in training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from labelmem.baselines.base import FromLabels, refuse_options, require
from labelmem.baselines.state import TensorState
from labelmem.labels import KnownLabels, plain
from labelmem.online import Recorded

__all__ = ["LabelMethod", "LabelOptions", "label_ids"]


@dataclass(frozen=True)
class LabelOptions:
    """What all of them can choose."""

    smoothing: float = 1.0
    """Added to the count of every known label (add-k)."""

    def __post_init__(self) -> None:
        good = self.smoothing > 0 and math.isfinite(self.smoothing)
        require(good, "smoothing", self.smoothing, "must be a positive number")


S = TypeVar("S", bound=TensorState)
O = TypeVar("O", bound=LabelOptions)  # noqa: E741  # the type of the options


class LabelMethod(FromLabels[S, O]):
    """A method that ignores its inputs: all it knows are labels, of training and of the stream.

    Parameters are those of :class:`labelmem.baselines.base.FromLabels`.
    """

    counts: Tensor | None = None
    """How often each label came in training, once it is fitted."""

    def fit(self, sequences: Iterable[Recorded], **options: Any) -> Self:
        """Count the labels of the training streams, afresh; unknown labels are passed over."""
        refuse_options(self.name, options)
        self._count([label_ids(labels, self.known) for _, labels in sequences])
        return self

    def _count(self, recorded: list[Tensor]) -> None:
        ids = torch.cat([torch.zeros(0, dtype=torch.int64), *recorded])
        counts = torch.bincount(ids[ids >= 0], minlength=len(self.known))
        self.counts = counts.to(self.device, torch.float64)

    def background(self, streams: int, width: int) -> Tensor:
        """The smoothed frequencies as (n, width) probabilities; labels of a stream's own have 0."""
        none = torch.zeros(len(self.known), dtype=torch.float64, device=self.device)
        counts = (none if self.counts is None else self.counts) + self.options.smoothing
        p = (counts / counts.sum()).to(self.dtype)
        return torch.nn.functional.pad(p, (0, width - len(p))).repeat(streams, 1)


def label_ids(labels: Sequence[Any] | Tensor, known: KnownLabels) -> Tensor:
    """Ids (T,) of recorded labels; -1 for those that are not known.

    Examples
    --------
    >>> label_ids(["dog", "emu", "cat"], KnownLabels(["cat", "dog"]))
    tensor([ 1, -1,  0])
    """
    if isinstance(labels, Tensor) and known.are_ids and not labels.is_floating_point():
        ids = labels.to("cpu", torch.int64)
        return torch.where((ids >= 0) & (ids < len(known)), ids, -1)
    found = (known.find(plain(label)) for label in labels)
    return torch.tensor([-1 if i is None else i for i in found], dtype=torch.int64)
