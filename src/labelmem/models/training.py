"""Train a classifier in the ordinary way, before it is adapted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn

from labelmem.checkpoint import Checkpoint
from labelmem.errors import InputError, ModelError
from labelmem.models.batches import (
    Losses,
    example_losses,
    label_sequences,
    sequence_losses,
    split,
)
from labelmem.models.fit_options import FitOptions, FitResult
from labelmem.models.recurrent import SequenceModel

__all__ = ["Progress", "fit_classifier", "fit_sequences", "seeded_dropout"]

Progress: TypeAlias = Callable[[int, int, Mapping[str, float]], None]
"""Called after each epoch with its number, the most there can be, and its losses."""


def fit_classifier(
    model: nn.Module,
    X: Tensor,
    y: Tensor,
    options: FitOptions | None = None,
    validation: tuple[Tensor, Tensor] | None = None,
    progress: Progress | None = None,
) -> FitResult:
    """Train a model of single inputs by cross-entropy and leave it with its best weights.

    Parameters
    ----------
    model
        Gives logits (n, labels) for inputs (n, ...). It ends in eval mode, on the device it was on.
    X
        (n, ...) inputs.
    y
        (n,) labels as whole numbers.
    options
        How to train; the defaults if None.
    validation
        Inputs and labels to choose the best epoch by; a random part of the training data if None.
    progress
        Called after each epoch.

    Examples
    --------
    >>> from labelmem.models import MLP
    >>> _ = torch.manual_seed(0)  # of the untrained weights; training has a seed of its own
    >>> X = torch.linspace(-1, 1, 64)[:, None]
    >>> model = MLP(features=1, labels=2)
    >>> result = fit_classifier(model, X, (X[:, 0] > 0).long(), FitOptions(epochs=30, lr=0.01))
    >>> model(torch.tensor([[-0.9], [0.9]])).argmax(1)
    tensor([0, 1])
    """
    options = options or FitOptions()
    _check_examples(X, y)
    if validation is None:
        rows, others = split(len(y), options.validation, options.seed)
        held = (X[others], y[others])
        X, y = X[rows], y[rows]
    else:
        held = validation
        _check_examples(*held)
    train = partial(example_losses, model, X, y, options.batch)
    judge = partial(example_losses, model, *held, options.batch)
    groups = [(list(model.parameters()), options.weight_decay)]
    return _fit(model, groups, train, judge if len(held[1]) else None, options, progress)


def fit_sequences(
    model: SequenceModel,
    sequences: Sequence[Tensor | Sequence[int]],
    options: FitOptions | None = None,
    validation: Sequence[Tensor | Sequence[int]] | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> FitResult:
    """Train a model to predict every label of every sequence, the first included.

    Or, with ``FitOptions(objective="new")``, to predict those that are new to their sequence.
    Sequences of similar length share a batch, padded and masked. Long ones are cut into windows:
    the state goes on from one window to the next, the gradient does not.

    Parameters
    ----------
    model
        Ends in eval mode, on the device it was on, with the weights of its best epoch. What it
        takes from the data before training (``start_from``) and which of its weights decay
        (``decayed``) are its own business.
    sequences
        The labels of each stream in the order of time; empty streams are skipped.
    options
        How to train; the defaults if None.
    validation
        Sequences to choose the best epoch by; a random part of the training sequences if None.
    progress
        Called after each epoch.
    checkpoint
        A file to continue from if it exists, brought up to date after every epoch. What comes out
        is the same as without an interruption.

    Examples
    --------
    >>> from labelmem.models import GRUModel
    >>> _ = torch.manual_seed(0)  # of the untrained weights; training has a seed of its own
    >>> model = GRUModel(labels=3, dim=16)
    >>> result = fit_sequences(model, [[0, 1, 2] * 4] * 16, FitOptions(epochs=30, lr=0.02))
    >>> h, _ = model.forward_sequence(torch.tensor([[model.start_token, 0, 1, 2]]))
    >>> model.head(h).argmax(-1)
    tensor([[0, 1, 2, 0]])
    """
    options = options or FitOptions()
    known = label_sequences(sequences, model.labels, "sequences")
    if validation is None:
        rows, others = split(len(known), options.validation, options.seed)
        held = [known[row] for row in others]
        known = [known[row] for row in rows]
    else:
        held = label_sequences(validation, model.labels, "validation")
    if checkpoint is None or not checkpoint.exists():
        model.start_from(known)
    train = partial(sequence_losses, model, known, options)
    judge = partial(sequence_losses, model, held, replace(options, repeat_share=0.0))
    groups = model.decayed(options.weight_decay, options.bias_decay)
    return _fit(model, groups, train, judge if held else None, options, progress, checkpoint)


def _fit(
    model: nn.Module,
    groups: Sequence[tuple[list[nn.Parameter], float]],
    train: Losses,
    judge: Losses | None,
    options: FitOptions,
    progress: Progress | None,
    checkpoint: Path | None = None,
) -> FitResult:
    learned = [([p for p in group if p.requires_grad], decay) for group, decay in groups]
    optimizer = torch.optim.AdamW(
        [{"params": group, "weight_decay": decay} for group, decay in learned], options.lr
    )
    order = torch.Generator().manual_seed(options.seed)
    device = next(model.parameters()).device
    shapes = {name: list(p.shape) for name, p in model.named_parameters()}
    state = Checkpoint.begin(model, optimizer, {"options": asdict(options), "weights": shapes})
    history: list[dict[str, float]] = []

    def update(loss: Tensor) -> None:
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        if options.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        optimizer.step()

    try:
        with seeded_dropout(options.seed, device):
            if checkpoint is not None and checkpoint.exists():
                state.load(checkpoint)
                history = _recall(state.extra, order, device)
            while not _done(history, options):
                epoch = len(history) + 1
                model.train()
                losses = {"loss": _mean(train(order), update)}
                if judge is not None:
                    model.eval()
                    with torch.no_grad():
                        losses["validation"] = _mean(judge(None))
                _check_finite(losses, epoch, options)
                history.append(losses)
                if _best_epoch(history) == epoch:
                    state.best = deepcopy(model.state_dict())
                if checkpoint is not None:
                    state.extra = _remember(history, order, device)
                    state.save(checkpoint)
                if progress is not None:
                    progress(epoch, options.epochs, losses)
    finally:  # also when interrupted: the best weights so far are worth keeping
        state.restore_best()
        model.eval()
    return FitResult(tuple(history), _best_epoch(history))


def _done(history: Sequence[Mapping[str, float]], options: FitOptions) -> bool:
    epochs = len(history)
    stale = epochs > 0 and epochs - _best_epoch(history) >= options.patience
    return epochs >= options.epochs or stale


def _best_epoch(history: Sequence[Mapping[str, float]]) -> int:
    """Counted from 1; without validation data the latest is best."""
    if "validation" not in history[-1]:
        return len(history)
    losses = [losses["validation"] for losses in history]
    return 1 + losses.index(min(losses))


def _remember(
    history: Sequence[Mapping[str, float]], order: torch.Generator, device: torch.device
) -> dict[str, Tensor]:
    """The losses so far, and where all random generators stand."""
    rows = [[epoch["loss"], epoch.get("validation", math.nan)] for epoch in history]
    kept = {"history": torch.tensor(rows, dtype=torch.float64), "order": order.get_state()}
    kept["dropout"] = torch.get_rng_state()
    if device.type == "cuda":
        kept["cuda"] = torch.cuda.get_rng_state(device)
    return kept


def _recall(
    kept: Mapping[str, Tensor], order: torch.Generator, device: torch.device
) -> list[dict[str, float]]:
    """Put the generators where they stood, and return the losses so far."""
    order.set_state(kept["order"])
    torch.set_rng_state(kept["dropout"])
    if "cuda" in kept and device.type == "cuda":
        torch.cuda.set_rng_state(kept["cuda"], device)
    history = [{"loss": loss, "validation": held} for loss, held in kept["history"].tolist()]
    return [{k: v for k, v in losses.items() if not math.isnan(v)} for losses in history]


def _mean(
    losses: Iterator[tuple[Tensor, float]], update: Callable[[Tensor], None] | None = None
) -> float:
    """Weighted mean; only at the end does the device have to be waited for."""
    total, weights = torch.zeros(()), 0.0
    for loss, weight in losses:
        if update is not None:
            update(loss)
        total = total.to(loss.device) + loss.detach().double() * weight
        weights += weight
    return total.item() / weights


def _check_finite(losses: Mapping[str, float], epoch: int, options: FitOptions) -> None:
    if not all(math.isfinite(loss) for loss in losses.values()):
        raise ModelError(
            f"the losses of epoch {epoch} are {dict(losses)}; expected finite numbers. Check the "
            f"inputs, or lower lr (it is {options.lr})"
        )


def _check_examples(X: Tensor, y: Tensor) -> None:
    whole = not y.is_floating_point() and y.dtype != torch.bool
    if y.dim() != 1 or not whole or len(X) != len(y) or len(y) == 0:
        raise InputError(
            f"X has shape {tuple(X.shape)}, y is {y.dtype} of shape {tuple(y.shape)}; "
            "expected as many whole numbers in y as rows in X, at least one"
        )


@contextmanager
def seeded_dropout(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators that dropout draws from, and give them back as they were."""
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)
        for place in cuda:
            with torch.cuda.device(place):
                torch.cuda.manual_seed(seed)
        yield
