"""Training of the network that reads the memory of a text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.checkpoint import Checkpoint
from labelmem.config import check_limits
from labelmem.errors import ConfigError, ModelError
from labelmem_paper.experiments.language.lessons import Reading, Start, resumed, track_starts
from labelmem_paper.experiments.language.memory_of_text import TextMemory
from labelmem_paper.experiments.language.pieces import pieces
from labelmem_paper.experiments.language.recall import Recall

__all__ = ["RecallOptions", "fit_recall", "recall_loss"]


@dataclass(frozen=True)
class RecallOptions:
    """How the reading of the memory is trained.

    Examples
    --------
    >>> RecallOptions(tracks=0)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: tracks is 0; it must be at least 1
    """

    epochs: int = 12
    """Times that the text is read; the step size falls along half a cosine."""
    lr: float = 3e-3
    """Step size of Adam at its largest."""
    key_lr: float = 0.3
    """The share of it for what is as wide as h: the learned key and the look at h."""
    weight_decay: float = 1e-3
    """Pull of the weights towards 0 (AdamW)."""
    tracks: int = 16
    """Places of the text that are read side by side, each with the memory of all before it."""
    steps: int = 64
    """Words of each between two updates."""
    clip: float = 1.0
    """The largest norm of a gradient."""

    def __post_init__(self) -> None:
        check_limits(self, ("epochs", "tracks", "steps"))
        if not (self.lr > 0 and self.clip > 0 and self.key_lr >= 0):
            raise ConfigError(
                f"lr is {self.lr}, key_lr is {self.key_lr}, clip is {self.clip}; lr and clip must "
                "be above 0, key_lr must not be negative"
            )


def fit_recall(
    recall: Recall,
    reading: Reading,
    options: RecallOptions,
    choose: Callable[[], float] | None = None,
    checkpoint: Path | None = None,
) -> list[float]:
    """Train a network on a text that the model was not trained on.

    Parameters
    ----------
    choose
        Gives the loss that decides which epoch is kept; None keeps the last.
    checkpoint
        A file to continue from if it exists, brought up to date after every epoch.

    Returns
    -------
    losses
        What ``choose`` gave after each epoch; the training loss where it is None.
    """
    optimiser = torch.optim.AdamW(_groups(recall, options), weight_decay=options.weight_decay)
    identity: dict[str, Any] = {"options": asdict(options), "memory": asdict(reading.memory)}
    identity |= {"words": len(reading.text), "chosen": choose is not None}
    state = Checkpoint.begin(recall, optimiser, identity)
    if checkpoint is not None and checkpoint.exists():
        state.load(checkpoint)
    else:
        recall.centre.copy_(_centre(reading))
        state.best = {name: part.clone() for name, part in recall.state_dict().items()}
    starts = track_starts(recall, reading, options.tracks)
    for epoch in range(len(state.losses), options.epochs):
        loss = _epoch(recall, reading, options, optimiser, starts, epoch)
        loss = loss if choose is None else choose()
        if not math.isfinite(loss):
            raise ModelError(f"the loss of the memory's reader is {loss}; lower lr ({options.lr})")
        state.record(loss)
        if checkpoint is not None:
            state.save(checkpoint)
    if choose is not None:
        state.restore_best()
    recall.eval()
    return state.losses


@torch.no_grad()
def recall_loss(recall: Recall, reading: Reading, skipped: int = 0, streams: int = 1) -> float:
    """Nats per word of a text, all but the first ``skipped`` words of each stream."""
    memory = TextMemory(recall, reading.memory, streams)
    total, count = torch.zeros((), dtype=torch.float64, device=recall.centre.device), 0
    for lesson in reading.lessons(TextMemory(recall, reading.memory, streams)):
        nats = lesson.nats(memory)[:, max(0, skipped - lesson.piece.start) :]
        total += nats.double().sum()
        count += nats.numel()
    return float(total / count)


def _epoch(
    recall: Recall,
    reading: Reading,
    options: RecallOptions,
    optimiser: torch.optim.Optimizer,
    starts: list[Start],
    epoch: int,
) -> float:
    recall.train()
    memory = resumed(recall, reading.memory, starts)
    length = len(reading.text) // options.tracks
    total, count = torch.zeros((), device=recall.centre.device), 0
    for lesson in reading.lessons(resumed(recall, reading.memory, starts), options.steps):
        gone = (epoch + lesson.piece.start / length) / options.epochs
        for group in optimiser.param_groups:
            group["lr"] = group["most"] * _rate(gone)
        loss = lesson.nats(memory).mean()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(recall.parameters(), options.clip)
        optimiser.step()
        total, count = total + loss.detach(), count + 1
    recall.eval()
    return float(total / count)


def _groups(recall: Recall, options: RecallOptions) -> list[dict[str, Any]]:
    wide = [recall.key.weight, recall.look.weight]
    rest = [p for p in recall.parameters() if all(p is not one for one in wide)]
    rates = (options.lr * options.key_lr, options.lr)
    return [
        {"params": params, "lr": rate, "most": rate}
        for params, rate in zip((wide, rest), rates, strict=True)
    ]


def _rate(gone: float) -> float:
    """The share of the step size: rising in the first twentieth, then falling."""
    return min(1.0, 0.1 + 18 * gone) * (0.02 + 0.98 * (1 + math.cos(math.pi * gone)) / 2)


def _centre(reading: Reading) -> Tensor:
    """(d,) the mean of h."""
    several = min(8, len(reading.text))
    read = pieces(reading.model, reading.text, several, reading.opening)
    sums = [piece.h.sum(dim=(0, 1)) for piece in read]
    return torch.stack(sums).sum(0) / len(reading.text)
