"""The same situation made of training examples alone, for whoever has to choose or to train."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.frozen import FrozenTask, Stream
from labelmem_paper.experiments.adapt.linear import linear_task

__all__ = ["RehearsalOptions", "rehearse"]


@dataclass(frozen=True)
class RehearsalOptions:
    """How large it is."""

    rows: int = 10_000
    """The most training examples that take part."""
    streams: int = 4
    """Streams of each kind: a few known labels, these and new ones, everything."""
    steps: int = 200
    """The longest stream."""


def rehearse(task: FrozenTask, seed: int, options: RehearsalOptions) -> FrozenTask:
    """A third of the known labels plays the new ones; nothing that the task shows takes part.

    A smaller head is trained on half of the examples of the other labels. Its streams show the
    other half, and all examples of the labels that it was not taught.
    """
    h, y = _sample(task.train_h, task.train_y, options.rows)
    labels = len(set(y.tolist()))
    dealt = deal(y.numpy(), labels - max(1, labels // 3), seed)
    made = linear_task(task.name, h, dealt, seed)
    few, both, every = (made.streams[form] for form in ("few", "few-new", "new"))
    most, steps = options.streams, options.steps
    streams = [*few[:most], *both[:most], *_pieces(every[0], steps)[:most]]
    return replace(made, streams={"rehearsal": [one.part(0, steps) for one in streams]})


def _sample(h: Tensor, y: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The same rows in every rehearsal, so that all heads have as many labels."""
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    rows = order[:most].sort().values
    return h[rows], y[rows]


def _pieces(stream: Stream, steps: int) -> list[Stream]:
    return [stream.part(start, start + steps) for start in range(0, len(stream), steps)]
