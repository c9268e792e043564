"""Training a combiner on the last step of each sequence; earlier steps only fill the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from labelmem import Adapter
from labelmem.checkpoint import Checkpoint
from labelmem.combiner import StreamCombiner
from labelmem.config import check_limits
from labelmem.errors import ConfigError, UnsupportedError
from labelmem.models.training import seeded_dropout
from labelmem.online import Recorded
from labelmem.progress import progress_bar
from labelmem.recording import lockstep_batches
from labelmem.replay import record
from labelmem.unrolling.streams import Unrolled, can_unroll, losses, unrolled

__all__ = ["LastOptions", "fit_last"]

Part = tuple[Adapter, Sequence[Recorded]]


@dataclass(frozen=True)
class LastOptions:
    """How the combiner is trained."""

    epochs: int = 30
    """The most passes over the sequences."""
    patience: int = 8
    """Stop after so many epochs without a better validation loss."""
    batch_size: int = 128
    """Sequences side by side."""
    lr: float = 3e-3
    """Adam's learning rate."""
    weight_decay: float = 0.0
    """Pull of the weights towards 0 (AdamW)."""
    clip: float = 1.0
    """The largest norm of a gradient."""
    seed: int = 0
    """Of the order of the batches."""

    def __post_init__(self) -> None:
        check_limits(self, ("epochs", "patience", "batch_size"))
        if not self.lr > 0 or not self.clip > 0 or not self.weight_decay >= 0:
            raise ConfigError(
                f"lr is {self.lr}, clip is {self.clip}, weight_decay is {self.weight_decay}; "
                "expected numbers above 0, and a decay from 0"
            )


def fit_last(
    combiner: StreamCombiner,
    parts: Sequence[Part],
    valid: Sequence[Part],
    options: LastOptions,
    checkpoint: Path,
    show: bool | None = None,
) -> list[float]:
    """Minimise -log P of the last label of every sequence, and keep the best epoch.

    Parameters
    ----------
    parts
        Adapters with this combiner, each around another network, and what that one has not seen.
    valid
        The same for choosing the epoch.
    checkpoint
        A file to continue from if it exists, brought up to date after every epoch.

    Returns
    -------
    The validation loss in nats before training and after every epoch.
    """
    train = [batch for part in parts for batch in _read(part, combiner, options.batch_size)]
    judge = [batch for part in valid for batch in _read(part, combiner, options.batch_size)]
    combiner.standardise([(streams.look, streams.mask) for streams in train])
    optimiser = torch.optim.AdamW(
        combiner.parameters(), options.lr, weight_decay=options.weight_decay
    )
    sizes = [len(sequences) for _, sequences in (*parts, *valid)]
    identity = {"options": vars(options), "data": sizes, "form": combiner.form()}
    state = Checkpoint.begin(combiner, optimiser, identity)
    if checkpoint.exists():
        state.load(checkpoint)
    with progress_bar("combiner", options.epochs, show) as report:
        if not state.losses:
            state.record(_mean_loss(combiner, judge))
        report(len(state.losses) - 1)
        while not _done(state.losses, options):
            _epoch(combiner, train, optimiser, options, len(state.losses))
            state.record(_mean_loss(combiner, judge))
            state.save(checkpoint)
            report(note=f"{state.losses[-1]:.4f} nats")
    state.restore_best()
    return state.losses


def _read(part: Part, combiner: StreamCombiner, size: int) -> list[Unrolled]:
    """The memory along all sequences, read once."""
    adapter, sequences = part
    if adapter.combiner is not combiner or not can_unroll(combiner, adapter.memory):
        raise UnsupportedError(
            "the adapter has another combiner, or its memory depends on what is predicted; it "
            "needs the combiner that is trained, margin=inf and one cell per label"
        )
    longest = max(len(y) for _, y in sequences)
    found = []
    for batch in lockstep_batches(sequences, adapter.known, size, adapter.device, adapter.dtype):
        found += list(unrolled(adapter, record(adapter, batch), size, longest, 1))
    return found


def _last_losses(combiner: StreamCombiner, streams: Unrolled) -> Tensor:
    """(n,) -log P of each stream's last label."""
    last = streams.mask.sum(dim=1, keepdim=True) - 1
    return losses(combiner, streams).gather(1, last)[:, 0]


@torch.no_grad()
def _mean_loss(combiner: StreamCombiner, batches: Sequence[Unrolled]) -> float:
    return float(torch.cat([_last_losses(combiner, one) for one in batches]).double().mean())


def _epoch(
    combiner: StreamCombiner,
    batches: Sequence[Unrolled],
    optimiser: torch.optim.Optimizer,
    options: LastOptions,
    epoch: int,
) -> None:
    # Seeded by epoch, so that a resumed training sees the order it would have seen.
    seed = options.seed * 100_003 + epoch
    generator = torch.Generator().manual_seed(seed)
    combiner.train()
    with seeded_dropout(seed, combiner.bias_theta.device):
        for i in torch.randperm(len(batches), generator=generator).tolist():
            optimiser.zero_grad()
            torch.autograd.backward(_last_losses(combiner, batches[i]).mean())
            torch.nn.utils.clip_grad_norm_(combiner.parameters(), options.clip)
            optimiser.step()
    combiner.eval()


def _done(found: Sequence[float], options: LastOptions) -> bool:
    epochs = len(found) - 1
    return epochs >= options.epochs or epochs - found.index(min(found)) >= options.patience
