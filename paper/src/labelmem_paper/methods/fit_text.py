"""Training of a language model on one long text, cut into streams that are read side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from labelmem.checkpoint import Checkpoint
from labelmem.config import check_limits
from labelmem.errors import ConfigError, DataError, ModelError
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["TextOptions", "fit_text", "side_by_side", "text_loss"]

Watch = Callable[[int, float], None]
"""Told the number of each finished epoch and its validation loss."""


@dataclass(frozen=True)
class TextOptions:
    """How a language model is trained.

    Examples
    --------
    >>> TextOptions(average=1.0)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: average is 1.0; it must lie in [0, 1)
    """

    epochs: int = 40
    """Times that the text is read; the step size falls along half a cosine to almost 0."""
    batch: int = 32
    """Streams that the text is cut into."""
    bptt: int = 70
    """Words between two updates."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """Plain gradients take large steps, about 20; on texts of millions of words they end better."""
    lr: float = 2e-3
    """Step size at its largest."""
    warm: float = 0.02
    """Share of the updates in which the step size rises."""
    weight_decay: float = 1e-6
    """Pull of all weights towards 0, as a part of the gradient."""
    clip: float = 0.5
    """The largest norm of a gradient."""
    average: float = 0.0
    """Share of the averaged weights that an update keeps; 0 uses the latest weights."""
    half: bool = False
    """Whether the output layer computes in 16 bits (bfloat16) in training."""
    seed: int = 0
    """Of what is dropped, epoch by epoch."""

    def __post_init__(self) -> None:
        check_limits(self, ("epochs", "batch", "bptt"))
        if self.optimiser not in ("adam", "sgd"):
            raise ConfigError(f"optimiser is {self.optimiser!r}; it must be 'adam' or 'sgd'")
        if not (self.lr > 0 and self.clip > 0):
            raise ConfigError(f"lr is {self.lr}, clip is {self.clip}; both must be above 0")
        for name in ("average", "warm"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must lie in [0, 1)")


def side_by_side(text: Tensor, streams: int, opening: int) -> tuple[Tensor, Tensor]:
    """A text (T,) as ``streams`` parts of equal length: inputs and the words that follow them.

    Every word but those of the last incomplete row is a target once. The first input of a part is
    the word before it; that of the text is ``opening``.

    Examples
    --------
    >>> side_by_side(torch.tensor([5, 6, 7, 8, 9]), 2, opening=0)
    (tensor([[0, 5], [6, 7]]), tensor([[5, 6], [7, 8]]))
    """
    length = len(text) // streams
    if length < 1:
        raise DataError(f"a text of {len(text)} words cannot be cut into {streams} streams")
    before = torch.cat([text.new_tensor([opening]), text[:-1]])
    x, y = (part[: streams * length].view(streams, length) for part in (before, text))
    return x, y


def fit_text(
    model: TextLSTM,
    train: Tensor,
    valid: Tensor,
    options: TextOptions,
    opening: int,
    checkpoint: Path | None = None,
    watch: Watch | None = None,
    pause: float = 0.0,
) -> list[float]:
    """Train a model on a text; it ends with the weights of its best epoch on ``valid``.

    Parameters
    ----------
    train, valid
        (T,) words, on the model's device.
    opening
        The input before the first word.
    checkpoint
        A file to continue from if it exists, brought up to date after an epoch.
    pause
        Seconds that lie between two writings of that file at least: a large model takes its time.

    Returns
    -------
    losses
        Nats per word of ``valid`` after each epoch.
    """
    optimiser = _optimiser(model, options)
    identity = {"options": asdict(options), "words": len(train), "model": str(model)}
    state = Checkpoint.begin(model, optimiser, identity)
    average = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    if checkpoint is not None and checkpoint.exists():
        state.load(checkpoint)
        for name, weight in average.items():  # in place: on its device, in the model's order
            weight.copy_(state.extra[name])
    x, y = side_by_side(train, options.batch, opening)
    saved = time.monotonic()
    devices = [x.device] if x.device.type == "cuda" else []
    for epoch in range(len(state.losses), options.epochs):
        # Seeded by epoch, so that a resumed training drops what it would have dropped.
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(options.seed * 1_000_003 + epoch)
            _epoch(model, optimiser, x, y, options, epoch, average)
        current = _copy(model)
        if options.average:
            _put(model, average)
        loss = text_loss(model, valid, opening)
        if not math.isfinite(loss):
            raise ModelError(f"the validation loss is {loss}; lower lr (it is {options.lr})")
        state.record(loss)
        _put(model, current)
        state.extra = average
        if checkpoint is not None and time.monotonic() - saved >= pause:
            state.save(checkpoint)
            saved = time.monotonic()
        if watch is not None:
            watch(epoch, loss)
    state.restore_best()
    model.eval()
    return state.losses


@torch.no_grad()
def text_loss(model: TextLSTM, text: Tensor, opening: int, streams: int | None = None) -> float:
    """Nats per word of a text, read in some streams; one for a thousand words each if None."""
    # Every stream begins without a past: short ones would make the model look worse than it is.
    streams = streams or min(32, max(1, len(text) // 1000))
    training = model.training
    model.eval()
    x, y = side_by_side(text, min(streams, len(text)), opening)
    total = torch.zeros((), dtype=torch.float64, device=x.device)
    carried = None
    for piece_x, piece_y in _passages(x, y, [64] * -(-x.shape[1] // 64)):
        loss, carried = model.passage_loss(piece_x, piece_y, carried, half=False)
        total += loss.double() * piece_y.numel()
    model.train(training)
    return float(total / y.numel())


def _optimiser(model: TextLSTM, options: TextOptions) -> torch.optim.Optimizer:
    # Most weights are words' vectors. On a GPU reading and writing these takes as long as all else,
    # so one pass over them must do.
    fused = model.head.weight.is_cuda
    if options.optimiser == "sgd":
        return torch.optim.SGD(
            model.parameters(), options.lr, weight_decay=options.weight_decay, fused=fused
        )
    return torch.optim.Adam(
        model.parameters(),
        options.lr,
        weight_decay=options.weight_decay,
        betas=(0.9, 0.99),
        fused=fused,
    )


def _epoch(
    model: TextLSTM,
    optimiser: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    options: TextOptions,
    epoch: int,
    average: dict[str, Tensor],
) -> None:
    model.train()
    # Cuts that differ from epoch to epoch: else the same words would always have a short past.
    first = 1 + int(torch.randint(options.bptt, ()))
    lengths = [first] + [options.bptt] * -(-max(0, x.shape[1] - first) // options.bptt)
    carried = None
    for i, (piece_x, piece_y) in enumerate(_passages(x, y, lengths)):
        rate = _rate((epoch + i / len(lengths)) / options.epochs, options.warm)
        for group in optimiser.param_groups:
            group["lr"] = options.lr * rate * piece_x.shape[1] / options.bptt
        loss, carried = model.passage_loss(piece_x, piece_y, carried, options.half)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        optimiser.step()
        if options.average:
            done = epoch * len(lengths) + i
            # At the start the average follows more closely, or it would remember the beginning.
            kept = min(options.average, (1 + done) / (10 + done))
            with torch.no_grad():
                torch._foreach_lerp_(list(average.values()), list(model.parameters()), 1 - kept)


def _passages(x: Tensor, y: Tensor, lengths: list[int]) -> Iterator[tuple[Tensor, Tensor]]:
    start = 0
    for length in lengths:
        stop = min(start + length, x.shape[1])
        if stop > start:
            yield x[:, start:stop], y[:, start:stop]
        start = stop


def _rate(gone: float, warm: float) -> float:
    """The share of the step size after a share of the training."""
    if gone < warm:
        return 0.05 + 0.95 * gone / warm
    return 0.01 + 0.99 * (1 + math.cos(math.pi * (gone - warm) / (1 - warm))) / 2


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@torch.no_grad()
def _put(model: nn.Module, weights: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
