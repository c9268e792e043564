"""Training data in shuffled batches, as the losses a model makes on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from labelmem.errors import InputError
from labelmem.models.recurrent import RecurrentModel, State

__all__ = [
    "Losses",
    "batches_of_like_length",
    "example_losses",
    "label_sequences",
    "sequence_losses",
    "split",
]

Losses: TypeAlias = Callable[[torch.Generator | None], Iterator[tuple[Tensor, int]]]
"""Mean loss and number of labels of one batch after the other, shuffled if there is a generator."""

_POOL = 16  # batches whose sequences are sorted by length together


def split(count: int, share: float, seed: int) -> tuple[list[int], list[int]]:
    """Two random parts of ``range(count)``, the second about ``share`` of it and never all.

    Examples
    --------
    >>> [len(part) for part in split(10, 0.2, seed=0)]
    [8, 2]
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()
    held = min(max(round(share * count), 1), count - 1) if share > 0 else 0
    return sorted(order[held:]), sorted(order[:held])


def label_sequences(
    sequences: Sequence[Tensor | Sequence[int]], labels: int, name: str
) -> list[Tensor]:
    """The sequences that are not empty, as tensors, after a check of every label.

    Examples
    --------
    >>> label_sequences([[1, 2], []], labels=3, name="sequences")
    [tensor([1, 2])]
    """
    tensors = [s.cpu() if isinstance(s, Tensor) else torch.tensor(s) for s in sequences]
    tensors = [tensor for tensor in tensors if tensor.numel()]
    if not tensors:
        raise InputError(f"{name} holds no label at all; expected at least one sequence with one")
    for index, tensor in enumerate(tensors):
        whole = not tensor.is_floating_point() and tensor.dtype != torch.bool and tensor.dim() == 1
        if not whole or tensor.min() < 0 or tensor.max() >= labels:
            raise InputError(
                f"{name} holds {tensor} (number {index} of those that are not empty); "
                f"expected a list of whole numbers from 0 to {labels - 1}, the model's labels"
            )
    return [tensor.long() for tensor in tensors]


def example_losses(
    model: nn.Module, X: Tensor, y: Tensor, size: int, generator: torch.Generator | None
) -> Iterator[tuple[Tensor, int]]:
    """Cross-entropy of single inputs, ``size`` at a time."""
    device = next(model.parameters()).device
    order = torch.arange(len(y)) if generator is None else _shuffled(len(y), generator)
    for rows in torch.split(order, size):
        logits = model(X[rows.to(X.device)].to(device))
        yield cross_entropy(logits, y[rows.to(y.device)].to(device, torch.int64)), len(rows)


def sequence_losses(
    model: RecurrentModel,
    sequences: Sequence[Tensor],
    size: int,
    window: int,
    generator: torch.Generator | None,
) -> Iterator[tuple[Tensor, int]]:
    """Cross-entropy of every label, ``size`` sequences and ``window`` steps at a time."""
    for rows in batches_of_like_length([len(s) for s in sequences], size, generator):
        yield from _window_losses(model, [sequences[row] for row in rows], window)


def _window_losses(
    model: RecurrentModel, longest_first: Sequence[Tensor], window: int
) -> Iterator[tuple[Tensor, int]]:
    device = next(model.parameters()).device
    lengths = torch.tensor([len(sequence) for sequence in longest_first])
    targets = pad_sequence(list(longest_first), batch_first=True)
    start = torch.full((len(targets), 1), model.start_token)
    inputs = torch.cat([start, targets[:, :-1]], 1)
    state: State = model.initial_state(len(targets))
    for first in range(0, targets.shape[1], window):
        alive = int((lengths > first).sum())
        span = slice(first, first + window)
        h, state = model.forward_sequence(inputs[:alive, span].to(device), _cut(state, alive))
        y = targets[:alive, span]
        real = torch.arange(first, first + y.shape[1]) < lengths[:alive, None]
        # The head is the costly part: it sees no padding.
        logits = model.head(h.flatten(0, 1)[real.flatten().nonzero()[:, 0].to(device)])
        y = y[real]
        yield cross_entropy(logits, y.to(device)), len(y)


def _cut(state: State, streams: int) -> State:
    """The first streams of a state, without its past: here the gradient ends."""
    if isinstance(state, Tensor):
        return state[:streams].detach()
    return tuple(part[:streams].detach() for part in state)


def batches_of_like_length(
    lengths: Sequence[int], size: int, generator: torch.Generator | None
) -> list[list[int]]:
    """Rows of each batch, longest first; random except that like lengths come together."""
    order = list(range(len(lengths)))
    if generator is not None:
        order = _shuffled(len(lengths), generator).tolist()
    batches = []
    for start in range(0, len(order), size * _POOL):
        pool = sorted(order[start : start + size * _POOL], key=lambda row: -lengths[row])
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    if generator is not None:
        batches = [batches[index] for index in _shuffled(len(batches), generator).tolist()]
    return batches


def _shuffled(count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator)
