"""Training the combiner on recorded streams by truncated back-propagation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from labelmem.checkpoint import Checkpoint
from labelmem.combiner import Combiner
from labelmem.errors import ConfigError, UnsupportedError
from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.progress import Report, progress_bar
from labelmem.recording import lockstep_batches, split_streams
from labelmem.replay import ReplayStep, record, replay, replay_live
from labelmem.trees import tree_map

__all__ = ["FitOptions", "FitResult", "fit"]


@dataclass(frozen=True)
class FitOptions:
    """How the combiner is trained."""

    epochs: int = 40
    """The most passes over the training streams."""
    patience: int = 8
    """Stop after so many epochs without a better validation loss."""
    batch_size: int = 16
    """Streams side by side."""
    truncate: int = 16
    """Steps between two updates, through which the gradient flows."""
    lr: float = 1e-2
    """Adam's learning rate."""
    clip: float = 1.0
    """The largest norm of a gradient."""
    held_out: float = 0.1
    """The share of streams for validation, when none are given."""
    train_model: bool = False
    """Whether the model is trained too (joint training) instead of staying frozen."""
    learn_kernel: bool = False
    """Whether lam and delta are trained too instead of staying as configured."""
    seed: int = 0
    """Seeds the held-out part and the order of the batches."""

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch_size", "truncate"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.lr > 0 or not self.clip > 0:
            raise ConfigError(f"lr is {self.lr}, clip is {self.clip}; both must be above 0")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out is {self.held_out}; it must lie in (0, 1)")


@dataclass(frozen=True)
class FitResult:
    """How training went; all losses in nats per token on the validation streams."""

    before: float
    """LMN-fixed, the starting point."""
    best: float
    """The epoch whose weights were kept."""
    epochs: list[float]
    """Every epoch in turn."""


Batch = Callable[[], Iterator[ReplayStep]]


def fit(
    adapter: LMN,
    sequences: Iterable[Recorded],
    validation: Iterable[Recorded] | None = None,
    checkpoint: str | Path | None = None,
    show: bool | None = None,
    **options: float,
) -> FitResult:
    """Train the adapter's combiner to minimise -log P(y), and keep its best epoch.

    Memory contents are constants of the gradient; the model is frozen unless ``train_model``.

    Parameters
    ----------
    sequences
        Pairs of inputs and labels, as the adapter will meet them when deployed: from streams that
        the model was *not* trained on, or the combiner learns to trust it too far.
    validation
        Streams for early stopping; None holds out a part of ``sequences``.
    checkpoint
        A file to continue from if it exists, brought up to date after every epoch.
    show
        Whether to show progress; None does where a person watches.
    options
        Fields of :class:`FitOptions`.
    """
    settings = FitOptions(**options)  # type: ignore[arg-type]
    if not isinstance(adapter.combiner, Combiner):
        raise UnsupportedError(
            "theta is fixed, so there is nothing to fit; use Adapter(..., combiner=Combiner()), "
            "or tune() to choose a better theta"
        )
    train, valid = list(sequences), None if validation is None else list(validation)
    if valid is None:
        train, valid = split_streams(train, settings.held_out, settings.seed)
    trainer = _Trainer(adapter, settings, train, valid)
    return trainer.run(None if checkpoint is None else Path(checkpoint), show)


class _Trainer:
    def __init__(
        self,
        adapter: LMN,
        options: FitOptions,
        train: Sequence[Recorded],
        valid: Sequence[Recorded],
    ) -> None:
        self.adapter, self.options = adapter, options
        self.train, self.valid = self._batches(train), self._batches(valid)
        self.trained = nn.ModuleDict({"combiner": self._combiner})
        if options.train_model:
            self.trained["model"] = adapter.backbone.model
        if options.learn_kernel:
            self.trained["kernel"] = adapter.learn_kernel()
        parameters = [p for p in self.trained.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(parameters, lr=options.lr)
        data = [len(train), len(valid), sum(len(y) for _, y in train)]
        self.identity = {"options": asdict(options), "data": data, "form": self._combiner.form()}

    @property
    def _combiner(self) -> Combiner:
        assert isinstance(self.adapter.combiner, Combiner)
        return self.adapter.combiner

    def _batches(self, sequences: Sequence[Recorded]) -> list[Batch]:
        adapter = self.adapter
        batches = lockstep_batches(
            sequences, adapter.known, self.options.batch_size, adapter.device, adapter.dtype
        )
        if self.options.train_model:
            return [partial(replay_live, adapter, batch) for batch in batches]
        return [partial(replay, adapter, record(adapter, batch)) for batch in batches]

    def run(self, path: Path | None, show: bool | None) -> FitResult:
        state = Checkpoint.begin(self.trained, self.optimiser, self.identity)
        if path is not None and path.exists():
            state.load(path)
        total = self.options.epochs * len(self.train)
        with progress_bar("fit", total, show) as report:
            if not state.losses:
                state.record(self._validate())
            report(len(self.train) * (len(state.losses) - 1))
            while not self._done(state):
                self._epoch(len(state.losses), report, state.losses[-1])
                state.record(self._validate())
                if path is not None:
                    state.save(path)
        state.restore_best()
        self.adapter.settle_kernel()
        return FitResult(state.losses[0], min(state.losses), state.losses[1:])

    def _done(self, state: Checkpoint) -> bool:
        epochs = len(state.losses) - 1
        since_best = epochs - state.losses.index(min(state.losses))
        return epochs >= self.options.epochs or since_best >= self.options.patience

    def _epoch(self, epoch: int, report: Report, last: float) -> None:
        # Seeded by epoch, so that a resumed training sees the order it would have seen.
        generator = torch.Generator().manual_seed(self.options.seed * 100_003 + epoch)
        for i in torch.randperm(len(self.train), generator=generator).tolist():
            self._batch(self.train[i]())
            report(note=f"epoch {epoch}, validation {last:.4f} nats")

    def _batch(self, steps: Iterator[ReplayStep]) -> None:
        while chunk := list(itertools.islice(steps, self.options.truncate)):
            tokens = sum(step.tokens for step in chunk)
            loss = torch.stack([step.loss.sum() for step in chunk]).sum() / max(tokens, 1)
            if loss.requires_grad:  # memories that are all empty teach nothing
                self.optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(self.trained.parameters(), self.options.clip)
                self.optimiser.step()
            _cut(chunk[-1])

    @torch.no_grad()
    def _validate(self) -> float:
        total, tokens = 0.0, 0
        for batch in self.valid:
            losses: list[Tensor] = []
            for step in batch():
                losses.append(step.loss.sum())
                tokens += step.tokens
            total += float(torch.stack(losses).double().sum())
        return total / tokens


def _cut(step: ReplayStep) -> None:
    """Truncate: later steps do not reach back beyond this one."""
    state = step.state
    if state.combiner is not None:
        state.combiner = state.combiner.detach()
    state.recurrent = tree_map(lambda leaf: leaf.detach(), state.recurrent)
