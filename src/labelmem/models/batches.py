"""Training data in shuffled batches, as the losses a model makes on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint

from labelmem.errors import InputError
from labelmem.models.fit_options import FitOptions
from labelmem.models.recurrent import SequenceModel, State
from labelmem.trees import tree_map

__all__ = [
    "Losses",
    "batches_of_like_length",
    "batches_of_tokens",
    "example_losses",
    "first_sights",
    "label_sequences",
    "sequence_losses",
    "split",
]

Losses: TypeAlias = Callable[[torch.Generator | None], Iterator[tuple[Tensor, float]]]
"""Mean loss of one batch after the other, shuffled if there is a generator, and its weight: the
number of labels that count in it."""

T = TypeVar("T")

_POOL = 16  # batches whose sequences are sorted by length together
_JITTER = 0.1  # share of a length within which sequences change places
_MOST_LOGITS = 2**26  # at a time; 256 MB, and a few times that while they are worked on


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
) -> Iterator[tuple[Tensor, float]]:
    """Cross-entropy of single inputs, ``size`` at a time."""
    device = next(model.parameters()).device
    for rows in torch.split(torch.tensor(_shuffled(range(len(y)), generator)), size):
        logits = model(X[rows.to(X.device)].to(device))
        yield cross_entropy(logits, y[rows.to(y.device)].to(device, torch.int64)), len(rows)


def sequence_losses(
    model: SequenceModel,
    sequences: Sequence[Tensor],
    options: FitOptions,
    generator: torch.Generator | None,
) -> Iterator[tuple[Tensor, float]]:
    """Cross-entropy of the labels that ``options`` says count, one window of a batch at a time."""
    lengths = [len(sequence) for sequence in sequences]
    if options.batch_tokens is None:
        batches = batches_of_like_length(lengths, options.batch, generator)
    else:
        batches = batches_of_tokens(lengths, options.batch_tokens, generator)
    for rows in batches:
        yield from _batch_losses(model, [sequences[row] for row in rows], options)


def _batch_losses(
    model: SequenceModel, longest_first: list[Tensor], options: FitOptions
) -> Iterator[tuple[Tensor, float]]:
    labels, device = pad_sequence(longest_first, batch_first=True), model.head.weight.device
    new, seen = torch.ones_like(labels, dtype=torch.bool), None
    repeat_share = options.repeat_share
    if options.objective == "new":
        new = first_sights(labels)
        # One column more than labels, for what is to be marked nowhere.
        seen = torch.zeros(len(new), model.labels + 1, dtype=torch.bool, device=device)
    for first, h, y, real in _windows(model, longest_first, options.window):
        counts = new[: len(y), first : first + y.shape[1]]
        rows, again = (real & counts).nonzero(), (real & ~counts).nonzero()
        weight = len(rows) + repeat_share * len(again)
        if weight > 0:
            total = _summed_loss(model, h, y, rows, seen)
            if repeat_share:
                total = total + repeat_share * _summed_loss(model, h, y, again)
            yield total / weight, weight
        # Only now: until here the gradient may have needed what was seen before the window.
        if seen is not None:
            seen[: len(y)].scatter_(1, y.masked_fill(~real.to(device), model.labels), True)


def _windows(
    model: SequenceModel, longest_first: Sequence[Tensor], window: int
) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Of each window its first step, h (n, w, dim), the labels (n, w), and which are no padding.

    n counts the sequences that are still going on. All are where the model is but the last.
    """
    device = model.head.weight.device
    lengths = torch.tensor([len(sequence) for sequence in longest_first])
    targets = pad_sequence(list(longest_first), batch_first=True).to(device)
    start = torch.full_like(targets[:, :1], model.start_token)
    inputs = torch.cat([start, targets[:, :-1]], 1)
    state: State = model.initial_state(len(targets))
    for first in range(0, targets.shape[1], window):
        alive = int((lengths > first).sum())
        span = slice(first, first + window)
        # Where a window begins, the gradient ends.
        state = tree_map(lambda part, n=alive: part[:n].detach(), state)
        h, state = model.forward_sequence(inputs[:alive, span], state)
        y = targets[:alive, span]
        yield first, h, y, torch.arange(first, first + y.shape[1]) < lengths[:alive, None]


def _summed_loss(
    model: SequenceModel, h: Tensor, y: Tensor, rows: Tensor, seen: Tensor | None = None
) -> Tensor:
    """Sum of the losses at ``rows`` (k, 2), pairs of sequence and step; see :func:`_part_loss`."""
    # The head is the costly part: it sees no padding and nothing that does not count.
    parts = torch.split(rows.to(h.device), max(1, _MOST_LOGITS // model.labels))
    loss = partial(_part_loss, model.head, h, y, seen)
    if len(parts) == 1:
        return loss(parts[0])
    # The logits of a part are forgotten and made anew for the gradient: never are all there.
    losses = [checkpoint(loss, p, use_reentrant=False, preserve_rng_state=False) for p in parts]
    return torch.stack(losses).sum()


def _part_loss(head: nn.Linear, h: Tensor, y: Tensor, seen: Tensor | None, rows: Tensor) -> Tensor:
    """Sum of the losses at some rows.

    Where there is ``seen`` (n, labels + 1), the labels marked there and those that came earlier in
    the window are taken out of the softmax.
    """
    sequence, step = rows.unbind(1)
    logits = head(h[sequence, step])
    if seen is not None:
        earlier = torch.arange(y.shape[1], device=y.device) < step[:, None]
        marked = y[sequence].masked_fill(~earlier, head.out_features)
        gone = seen[sequence].scatter_(1, marked, True)[:, :-1]
        logits = logits.masked_fill(gone, -torch.inf)
    return cross_entropy(logits, y[sequence, step], reduction="sum")


def first_sights(labels: Tensor) -> Tensor:
    """Where in its row a label of ``labels`` (n, T) stands for the first time.

    Examples
    --------
    >>> first_sights(torch.tensor([[4, 2, 4, 7, 2]]))
    tensor([[ True,  True, False,  True, False]])
    """
    ordered, order = labels.sort(dim=1, stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.zeros_like(new).scatter_(1, order, new)


def batches_of_like_length(
    lengths: Sequence[int], size: int, generator: torch.Generator | None
) -> list[list[int]]:
    """Rows of each batch, longest first; random except that like lengths come together."""
    order = _shuffled(range(len(lengths)), generator)
    batches = []
    for start in range(0, len(order), size * _POOL):
        pool = sorted(order[start : start + size * _POOL], key=lambda row: -lengths[row])
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    return _shuffled(batches, generator)


def batches_of_tokens(
    lengths: Sequence[int], tokens: int, generator: torch.Generator | None
) -> list[list[int]]:
    """Rows of each batch, longest first, at most ``tokens`` labels in each, padding included.

    Like lengths come together. A sequence that is longer than that has a batch of its own.

    Examples
    --------
    >>> batches_of_tokens([1, 5, 3, 9, 2], tokens=6, generator=None)
    [[3], [1], [2, 4], [0]]
    """
    key = torch.tensor(lengths, dtype=torch.float64)
    if generator is not None:
        key *= 1 + _JITTER * torch.rand(len(key), dtype=torch.float64, generator=generator)
    batches: list[list[int]] = []
    longest = 0
    for row in key.argsort(descending=True, stable=True).tolist():
        longest = max(longest, lengths[row])
        if not batches or longest * (len(batches[-1]) + 1) > tokens:
            batches.append([])
            longest = lengths[row]
        batches[-1].append(row)
    batches = [sorted(batch, key=lambda row: -lengths[row]) for batch in batches]
    return _shuffled(batches, generator)


def _shuffled(items: Sequence[T], generator: torch.Generator | None) -> list[T]:
    """In random order if there is a generator, as they are if not."""
    if generator is None:
        return list(items)
    return [items[i] for i in torch.randperm(len(items), generator=generator).tolist()]
