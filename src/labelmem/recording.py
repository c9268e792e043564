"""Recorded streams, padded into lockstep batches, with what the frozen model says about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import InputError
from labelmem.labels import KnownLabels, LabelSpace, plain
from labelmem.online import Recorded
from labelmem.trees import as_tensors, leaves, tree_map

__all__ = ["Lockstep", "lockstep_batches", "split_streams"]


@dataclass(frozen=True)
class Lockstep:
    """``n`` recorded streams side by side, padded to the longest, T steps."""

    x: Any
    """(n, T, …) inputs; padding repeats a stream's last input."""
    y: Tensor
    """(n, T) label ids; 0 in the padding."""
    mask: Tensor
    """(n, T) False in the padding."""
    width: int
    """The number of label ids: the model's and the most new ones of any stream."""
    order: tuple[int, ...]
    """Which of the given sequences these are."""

    @property
    def streams(self) -> int:
        """How many streams lie side by side."""
        return self.y.shape[0]

    def at(self, t: int) -> Any:
        """The inputs of step t, (n, …)."""
        return tree_map(lambda leaf: leaf[:, t], self.x)


def lockstep_batches(
    sequences: Iterable[Recorded],
    known: KnownLabels,
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Iterator[Lockstep]:
    """Group streams of like length into batches, longest first."""
    checked = [_checked(i, sequence, device, dtype) for i, sequence in enumerate(sequences)]
    if not checked:
        raise InputError("there are no sequences; expected pairs of inputs and labels")
    by_length = sorted(range(len(checked)), key=lambda i: -len(checked[i][1]))
    for start in range(0, len(by_length), batch_size):
        yield _padded(checked, by_length[start : start + batch_size], known, device)


def split_streams(
    sequences: Sequence[Recorded], fraction: float, seed: int
) -> tuple[list[Recorded], list[Recorded]]:
    """Hold out a seeded ``fraction`` of the streams, at least one."""
    if len(sequences) < 2:
        raise InputError(f"got {len(sequences)} sequence(s); two are needed to hold one out")
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(seed)).tolist()
    held = min(max(1, round(fraction * len(sequences))), len(sequences) - 1)
    return [sequences[i] for i in order[held:]], [sequences[i] for i in order[:held]]


def _checked(i: int, sequence: Recorded, device: torch.device, dtype: torch.dtype) -> Recorded:
    try:
        x, y = sequence
    except (TypeError, ValueError):
        raise InputError(f"sequence {i} is not a pair of inputs and labels") from None
    x = as_tensors(x, device, dtype, f"the inputs of sequence {i}")
    for leaf in leaves(x):
        if not len(y) or leaf.ndim == 0 or leaf.shape[0] != len(y):
            raise InputError(
                f"sequence {i} has inputs of shape {tuple(leaf.shape)} and {len(y)} labels; "
                "both need the same number of steps, at least one"
            )
    return x, y


def _padded(
    checked: list[Recorded], order: list[int], known: KnownLabels, device: torch.device
) -> Lockstep:
    lengths = [len(checked[i][1]) for i in order]
    longest = max(lengths)
    y = torch.zeros(len(order), longest, dtype=torch.int64)
    width = len(known)
    for row, i in enumerate(order):
        y[row, : lengths[row]], labels = _numbered(checked[i][1], known)
        width = max(width, labels)

    def stack(*parts: Tensor) -> Tensor:
        if len({part.shape[1:] for part in parts}) > 1:
            shapes = sorted({tuple(part.shape[1:]) for part in parts})
            raise InputError(f"inputs of one step have shape {shapes[0]} here, {shapes[1]} there")
        steps = torch.arange(longest, device=device)
        return torch.stack([part[steps.clamp(max=len(part) - 1)] for part in parts])

    x = tree_map(stack, *(checked[i][0] for i in order))
    mask = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    return Lockstep(x, y.to(device), mask.to(device), width, tuple(order))


def _numbered(labels: Sequence[Any] | Tensor, known: KnownLabels) -> tuple[Tensor, int]:
    """Label ids of one stream, its new labels numbered as it meets them, and how many it knows."""
    if isinstance(labels, Tensor):
        if known.are_ids and 0 <= int(labels.min()) <= int(labels.max()) < len(known):
            return labels.cpu(), len(known)
        labels = labels.tolist()
    space = LabelSpace(known)
    return torch.tensor([space.add(plain(label)) for label in labels]), len(space)
