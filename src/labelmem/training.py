"""Training the combiner on recorded streams by truncated back-propagation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.checkpoint import Checkpoint
from labelmem.combiner import Combiner, StreamCombiner
from labelmem.errors import ConfigError, UnsupportedError
from labelmem.lmn import LMN, LMNState, LMNStep
from labelmem.models.training import seeded_dropout
from labelmem.online import Recorded
from labelmem.progress import Report, progress_bar
from labelmem.recording import Lockstep, lockstep_batches, split_streams
from labelmem.replay import ReplayStep, record, replay, replay_live
from labelmem.starting import GUARD, HELD_OUT, chosen, judge_starts, lessons
from labelmem.stream_combiner import StreamState
from labelmem.stream_look import Look
from labelmem.trees import tree_map
from labelmem.unrolling.label import can_stretch, stretches
from labelmem.unrolling.streams import Unrolled, can_unroll, losses, unrolled

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
    """Steps between two updates, through which the gradient flows, where streams are replayed."""
    window: int = 1024
    """Steps of one update where streams are unrolled at once; longer ones are cut."""
    windows: int = 4
    """The most windows of a long stream that are unrolled, evenly spread."""
    lr: float = 1e-2
    """Adam's learning rate."""
    anneal: float = 1.0
    """The share of the learning rate that is left at the last epoch, along a cosine."""
    weight_decay: float = 0.0
    """Pull of the weights towards 0 (AdamW)."""
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
        for name in ("epochs", "patience", "batch_size", "truncate", "window", "windows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.lr > 0 or not self.clip > 0:
            raise ConfigError(f"lr is {self.lr}, clip is {self.clip}; both must be above 0")
        if not 0 <= self.anneal <= 1 or not self.weight_decay >= 0:
            raise ConfigError(
                f"anneal is {self.anneal}, weight_decay is {self.weight_decay}; expected a share "
                "in [0, 1] and a number from 0"
            )
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out is {self.held_out}; it must lie in (0, 1)")


@dataclass(frozen=True, repr=False)
class FitResult:
    """How training went; all losses in nats per token on the validation streams."""

    before: float
    """The starting point: LMN-fixed, unless the combiner was trained before."""
    best: float
    """The epoch whose weights were kept."""
    epochs: list[float]
    """Every epoch in turn; of the default form, every beginning that was learned."""

    def __repr__(self) -> str:
        return f"FitResult({self.before:.4f} -> {self.best:.4f} nats, {len(self.epochs)} epochs)"


_METRIC = "log_perplexity"
_ABREAST = 128
"""Streams that are read in lockstep."""

Batch = Callable[[], Iterator[tuple[Tensor, int]]]
"""One pass over a batch: the loss in nats and the number of tokens of each stretch of it."""


def fit(
    adapter: LMN,
    sequences: Iterable[Recorded],
    validation: Iterable[Recorded] | None = None,
    checkpoint: str | Path | None = None,
    show: bool | None = None,
    others: Iterable[tuple[nn.Module, Sequence[Recorded]]] = (),
    **options: float,
) -> FitResult:
    """Train the adapter's combiner to minimise -log P(y), and keep its best epoch.

    An adapter in the default form (``combiner=None``) has no combiner to train. What it learns here
    is how new streams begin: with the weights that the recorded users ended with, with what known
    labels looked like to them, or with both. It keeps what it had unless one of these is better on
    the streams that are held out, by more than chance.

    Memory contents are constants of the gradient; the model is frozen unless ``train_model``.
    Streams are replayed step by step, but with a combiner of kind ``stream`` and ``margin=inf`` the
    memory is read only once and streams are unrolled at once (:mod:`labelmem.unrolling`): the same
    losses, many times faster. With one of kind ``label`` and one cell per label the steps between
    two updates are taken at once (:mod:`labelmem.unrolling.label`): the same losses and updates.

    An error or an interrupt on the way is passed on, and leaves the adapter ready to predict with
    the best epoch so far: as it did before the call, if no epoch was better. With ``checkpoint``
    the same call continues from there.

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
    others
        More streams, each part with another model that did not see them in training. Cross-fitting:
        train the model again without a quarter of its streams, four times, and give these models
        here, each with the quarter it has not seen. They are given back as they came.
    options
        Fields of :class:`FitOptions`; the default form has ``held_out``, then a third unless
        another share is given, and ``seed``.
    """
    settings = FitOptions(**options)  # type: ignore[arg-type]
    if adapter.online is not None:
        asked = {*options} | ({"checkpoint"} if checkpoint else set())
        _refuse_training(asked | ({"others"} if list(others) else set()))
        share = options.get("held_out", HELD_OUT)
        return _begin_better(adapter, sequences, validation, share, settings.seed, show)
    if not isinstance(adapter.combiner, Combiner):
        raise UnsupportedError(
            "theta is fixed, so there is nothing to fit; use Adapter(..., combiner=Combiner()), "
            "or tune() to choose a better theta"
        )
    train, valid = list(sequences), None if validation is None else list(validation)
    if valid is None:
        train, valid = split_streams(train, settings.held_out, settings.seed)
    parts = [(adapter, train)] if train else []
    with ExitStack() as borrowed:  # the other models go back as they came
        for model, streams in others:
            if settings.train_model:
                raise UnsupportedError("joint training changes one model; leave the others out")
            other = borrowed.enter_context(adapter.around(model))
            parts.append((other, list(streams)))
        trainer = _Trainer(adapter, settings, parts, valid)
        return trainer.run(None if checkpoint is None else Path(checkpoint), show)


def _refuse_training(asked: set[str]) -> None:
    """What belongs to a combiner means nothing for the default form."""
    if senseless := sorted(asked - {"held_out", "seed"}):
        raise UnsupportedError(
            f"{', '.join(senseless)}: the default form has no combiner to train; leave this out, "
            "or use Adapter(..., combiner=Combiner())"
        )


def _begin_better(
    adapter: LMN,
    sequences: Iterable[Recorded],
    validation: Iterable[Recorded] | None,
    share: float,
    seed: int,
    show: bool | None,
) -> FitResult:
    """Let new streams of the default form begin with what others ended with, if that is better."""
    judged = judge_starts(adapter, lessons(adapter, sequences, validation, share, seed), show)
    outcomes = [one.outcome for one in judged.starts]
    best, losses = chosen(outcomes, _METRIC, GUARD), [one.mean(_METRIC) for one in outcomes]
    adapter.online = judged.starts[best].start.online
    return FitResult(losses[0], losses[best], losses[1:])


class _Trainer:
    def __init__(
        self,
        adapter: LMN,
        options: FitOptions,
        parts: Sequence[tuple[LMN, Sequence[Recorded]]],
        valid: Sequence[Recorded],
    ) -> None:
        self.adapter, self.options, self.parts, self.held_out = adapter, options, parts, valid
        self.trained = nn.ModuleDict({"combiner": self._combiner})
        if options.train_model:
            self.trained["model"] = adapter.backbone.model
        if options.learn_kernel:
            self.trained["kernel"] = adapter.learn_kernel([other for other, _ in parts])
        parameters = [p for p in self.trained.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            parameters, lr=options.lr, weight_decay=options.weight_decay
        )
        self.train: list[Batch] = []
        self.valid: list[Batch] = []

    @property
    def _combiner(self) -> Combiner:
        assert isinstance(self.adapter.combiner, Combiner)
        return self.adapter.combiner

    def _read(self) -> None:
        """Run the models over all streams and find the units of what the combiner sees.

        A trained combiner keeps the units it was trained in, as its weights mean nothing in others.
        """
        combiner, parts, valid = self._combiner, self.parts, self.held_out
        if can_unroll(combiner, self.adapter.memory) and len(self.trained) == 1:
            self.train, self.valid = self._unrolled(parts, valid)
            return
        if isinstance(combiner, StreamCombiner) and combiner.untrained:
            combiner.standardise(self._looks(parts))
        self.train = [batch for other, part in parts for batch in self._replayed(other, part)]
        self.valid = self._replayed(self.adapter, valid)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree on."""
        lengths = [len(y) for _, part in self.parts for _, y in part]
        data = [len(lengths), len(self.held_out), sum(lengths)]
        return {"options": asdict(self.options), "data": data, "form": self._combiner.form()}

    def _batches(
        self, adapter: LMN, sequences: Sequence[Recorded], size: int
    ) -> Iterator[Lockstep]:
        return lockstep_batches(sequences, adapter.known, size, adapter.device, adapter.dtype)

    def _replayed(self, adapter: LMN, sequences: Sequence[Recorded]) -> list[Batch]:
        """Batches to be replayed, as many steps at once as there are between two updates."""
        batches = self._batches(adapter, sequences, self.options.batch_size)
        truncate = self.options.truncate
        if len(self.trained) == 1 and can_stretch(adapter.combiner, adapter.memory):
            return [stretches(adapter, record(adapter, batch), truncate) for batch in batches]
        replays = [
            partial(replay_live, adapter, batch)
            if self.options.train_model
            else partial(replay, adapter, record(adapter, batch))
            for batch in batches
        ]
        return [partial(_stretches, steps, truncate) for steps in replays]

    @torch.no_grad()
    def _looks(
        self, parts: Sequence[tuple[LMN, Sequence[Recorded]]]
    ) -> Iterator[tuple[Look, Tensor]]:
        """What the combiner sees along the training streams while it is untrained."""
        looks: list[Look] = []
        combiner = self._combiner
        assert isinstance(combiner, StreamCombiner)

        def watch(state: LMNState, step: LMNStep) -> None:
            assert isinstance(state.combiner, StreamState)
            looks.append(combiner.look(state.combiner.past, step.view()))

        for adapter, streams in parts:
            for batch in self._batches(adapter, streams, _ABREAST):
                for t, _ in enumerate(replay(adapter, record(adapter, batch), watch)):
                    yield looks.pop(), batch.mask[:, t]

    def _unrolled(
        self, parts: Sequence[tuple[LMN, Sequence[Recorded]]], valid: Sequence[Recorded]
    ) -> tuple[list[Batch], list[Batch]]:
        """Training and validation batches whose memory is read once, here."""
        combiner, options = self._combiner, self.options
        assert isinstance(combiner, StreamCombiner)

        def read(adapter: LMN, sequences: Sequence[Recorded]) -> list[Unrolled]:
            rows, size, most = options.batch_size, options.window, options.windows
            # Reading takes as long for many streams as for few; training wants small batches.
            batches = self._batches(adapter, sequences, max(rows, _ABREAST))
            recorded = (record(adapter, batch) for batch in batches)
            pieces = (unrolled(adapter, found, rows, size, most) for found in recorded)
            return [piece for each in pieces for piece in each]

        train = [piece for other, part in parts for piece in read(other, part)]
        if combiner.untrained:
            combiner.standardise([(streams.look, streams.mask) for streams in train])
        return (
            [partial(_at_once, combiner, streams) for streams in train],
            [partial(_at_once, combiner, streams) for streams in read(self.adapter, valid)],
        )

    def run(self, path: Path | None, show: bool | None) -> FitResult:
        """Train, and keep the best epoch; also of a training that ends with an error."""
        state = Checkpoint.begin(self.trained, self.optimiser, {})  # as it was before the call
        try:
            self._read()
            state.identity = self._identity()
            self._train(state, path, show)
        finally:
            state.restore_best()
            self._combiner.eval()
            self.optimiser.zero_grad()
            improved = bool(state.losses) and min(state.losses) < state.losses[0]
            self.adapter.settle_kernel(keep=improved)
        return FitResult(state.losses[0], min(state.losses), state.losses[1:])

    def _train(self, state: Checkpoint, path: Path | None, show: bool | None) -> None:
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

    def _done(self, state: Checkpoint) -> bool:
        epochs = len(state.losses) - 1
        since_best = epochs - state.losses.index(min(state.losses))
        return epochs >= self.options.epochs or since_best >= self.options.patience

    def _epoch(self, epoch: int, report: Report, last: float) -> None:
        # Seeded by epoch, so that a resumed training sees the order it would have seen.
        seed = self.options.seed * 100_003 + epoch
        generator = torch.Generator().manual_seed(seed)
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate(epoch)
        self._combiner.train()
        with seeded_dropout(seed, self.adapter.device):
            for i in torch.randperm(len(self.train), generator=generator).tolist():
                for loss, tokens in self.train[i]():
                    self._update(loss / max(tokens, 1))
                report(note=f"epoch {epoch}, validation {last:.4f} nats")
        self._combiner.eval()

    def _rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 1."""
        left, gone = self.options.anneal, (epoch - 1) / self.options.epochs
        return self.options.lr * (left + (1 - left) * (1 + math.cos(math.pi * gone)) / 2)

    def _update(self, loss: Tensor) -> None:
        if loss.requires_grad:  # memories that are all empty teach nothing
            self.optimiser.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(self.trained.parameters(), self.options.clip)
            self.optimiser.step()

    @torch.no_grad()
    def _validate(self) -> float:
        total, tokens = 0.0, 0
        for batch in self.valid:
            stretches = list(batch())
            total += float(torch.stack([loss.double() for loss, _ in stretches]).sum())
            tokens += sum(count for _, count in stretches)
        return total / tokens


def _stretches(
    replayed: Callable[[], Iterator[ReplayStep]], truncate: int
) -> Iterator[tuple[Tensor, int]]:
    """A step-by-step replay, the gradient cut after every ``truncate`` steps."""
    steps = replayed()
    while chunk := list(itertools.islice(steps, truncate)):
        loss = torch.stack([step.loss.sum() for step in chunk]).sum()
        yield loss, sum(step.tokens for step in chunk)
        _cut(chunk[-1])


def _at_once(combiner: StreamCombiner, streams: Unrolled) -> Iterator[tuple[Tensor, int]]:
    """All steps of a batch in one."""
    yield losses(combiner, streams).sum(), int(streams.mask.sum())


def _cut(step: ReplayStep) -> None:
    """Truncate: later steps do not reach back beyond this one."""
    state = step.state
    if state.combiner is not None:
        state.combiner = state.combiner.detach()
    state.recurrent = tree_map(lambda leaf: leaf.detach(), state.recurrent)
