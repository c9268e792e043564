"""Training on windows of label sequences, for networks that learn while they read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from labelmem.checkpoint import Checkpoint
from labelmem.errors import InputError, ModelError
from labelmem.models.batches import batches_of_like_length
from labelmem.models.fit_options import FitOptions, FitResult
from labelmem.models.training import Progress, seeded_dropout
from labelmem.trees import tree_map
from labelmem_paper.methods.window_passes import UNSCORED, WindowLearner, WindowPass, window_pass

__all__ = ["fit_windows", "window_losses"]


def window_losses(
    learner: WindowLearner, longest_first: Sequence[Tensor], window: int, through: WindowPass
) -> Iterator[tuple[Tensor, int]]:
    """Sum of losses and number of labels of each window; the gradient ends where a window does.

    Parameters
    ----------
    through
        What goes over a window; its gradients are there when a window is yielded.
    """
    device = next(learner.network.parameters()).device
    lengths = torch.tensor([len(sequence) for sequence in longest_first])
    y = pad_sequence(list(longest_first), batch_first=True, padding_value=UNSCORED)
    scored = (y != UNSCORED).sum(0).tolist()  # counted here: the device need not be asked
    y = y.to(device)
    tokens = torch.cat([torch.full_like(y[:, :1], UNSCORED), y[:, :-1]], 1)
    tokens = tokens.masked_fill(tokens == UNSCORED, learner.start_token)
    state = learner.begin(len(y))
    for first in range(0, y.shape[1], window):
        alive, span = int((lengths > first).sum()), slice(first, first + window)
        state = tree_map(lambda leaf, alive=alive: leaf[:alive], state)
        count = sum(scored[span])
        total, state = through(tokens[:alive, span], y[:alive, span], state, max(count, 1))
        if count:
            yield total, count


def fit_windows(
    learner: WindowLearner,
    sequences: Sequence[Tensor],
    validation: Sequence[Tensor],
    options: FitOptions,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> FitResult:
    """Train a learner by Adam and leave its network with the weights of its best epoch.

    Parameters
    ----------
    sequences
        Label ids (T,), ``UNSCORED`` where a label is not known to the network.
    validation
        Sequences to choose the best epoch by, and to stop early by.
    checkpoint
        A file to continue from if it exists, brought up to date after every epoch. What comes out
        is the same as without an interruption.
    progress
        Called after each epoch with its number, the most there can be, and its loss.
    """
    train, valid = ([s for s in part if len(s)] for part in (sequences, validation))
    if not train or not valid:
        raise InputError(
            f"there are {len(train)} sequences to train on and {len(valid)} to validate on; "
            "at least one with labels is needed for each"
        )
    network = learner.network
    learned = [p for p in network.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(learned, options.lr, weight_decay=options.weight_decay)
    data = [len(train), len(valid), sum(len(s) for s in train)]
    identity = {"options": asdict(options), "data": data, "network": _form(network)}
    state = Checkpoint.begin(network, optimiser, identity)
    if checkpoint is not None and checkpoint.exists():
        state.load(checkpoint)
    try:
        passes = [window_pass(learner, options.batch, options.window, on) for on in (True, False)]
        while not _done(state.losses, options):
            epoch = len(state.losses) + 1
            _epoch(learner, train, optimiser, options, epoch, passes[0])
            state.record(_validate(learner, valid, options, epoch, passes[1]))
            if checkpoint is not None:
                state.save(checkpoint)
            if progress is not None:
                progress(len(state.losses), options.epochs, {"validation": state.losses[-1]})
    finally:  # also when interrupted: the best weights so far are worth keeping
        state.restore_best()
        network.eval()
    history = tuple({"validation": loss} for loss in state.losses)
    return FitResult(history, 1 + state.losses.index(min(state.losses)))


def _form(network: nn.Module) -> Mapping[str, list[int]]:
    return {name: list(p.shape) for name, p in network.named_parameters()}


def _done(losses: Sequence[float], options: FitOptions) -> bool:
    if not losses:
        return False
    since_best = len(losses) - 1 - losses.index(min(losses))
    return len(losses) >= options.epochs or since_best >= options.patience


def _epoch(
    learner: WindowLearner,
    train: Sequence[Tensor],
    optimiser: torch.optim.Optimizer,
    options: FitOptions,
    epoch: int,
    through: WindowPass,
) -> None:
    network = learner.network.train()
    # Seeded by epoch, so that a training that goes on sees what it would have seen.
    seed = options.seed * 100_003 + epoch
    order = torch.Generator().manual_seed(seed)
    with seeded_dropout(seed, next(network.parameters()).device):
        for rows in batches_of_like_length([len(s) for s in train], options.batch, order):
            batch = [train[i] for i in rows]
            for _ in window_losses(learner, batch, options.window, through):
                if options.clip is not None:
                    nn.utils.clip_grad_norm_(network.parameters(), options.clip)
                optimiser.step()
    optimiser.zero_grad()


def _validate(
    learner: WindowLearner,
    valid: Sequence[Tensor],
    options: FitOptions,
    epoch: int,
    through: WindowPass,
) -> float:
    learner.network.eval()
    losses: list[Tensor] = []
    count = 0
    for rows in batches_of_like_length([len(s) for s in valid], options.batch, None):
        batch = [valid[i] for i in rows]
        for loss, labels in window_losses(learner, batch, options.window, through):
            losses.append(loss)
            count += labels
    total = float(torch.stack(losses).double().sum()) if losses else 0.0
    if not count or not math.isfinite(total):
        raise ModelError(
            f"the validation loss of epoch {epoch} is {total} over {count} labels; expected a "
            f"finite number and some labels. Check the labels, or lower lr (it is {options.lr})"
        )
    return total / count
