"""What the methods of a sequence table share: the streams, the label set and the trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.errors import ConfigError
from labelmem.evaluation import evaluate
from labelmem.models import (
    FitOptions,
    GRUModel,
    HistoryModel,
    LSTMModel,
    SequenceModel,
    fit_sequences,
)
from labelmem.online import OnlineMethod
from labelmem.progress import progress_bar
from labelmem.split import Part
from labelmem_paper.datasets import Sequences, load
from labelmem_paper.experiments.figures import blocks, curve, figures, parameters
from labelmem_paper.experiments.records import Record
from labelmem_paper.experiments.run_task import RunTask
from labelmem_paper.experiments.traces import ThetaTraces

__all__ = ["TASK", "SequenceTask"]

Stream = tuple[Tensor, Tensor]
MODELS: Mapping[str, Callable[..., SequenceModel]] = {
    "gru": GRUModel,
    "lstm": LSTMModel,
    "history": HistoryModel,
}
TRAINING = tuple(option.name for option in fields(FitOptions) if option.name != "seed")
Fold = tuple[int, int]
"""The i-th of so many parts of the training streams."""


@dataclass(frozen=True)
class SequenceTask(RunTask):
    """One data set with one seed: predict every next token of every test stream.

    All methods see the same split, the same tokens, and, where they have one, the same model. What
    takes long is kept under ``work`` and found there by whoever comes next.
    """

    @cached_property
    def data(self) -> Sequences:
        """The data set, split by the run's seed."""
        data = load(self.run.dataset, self.config.get("recipe"), seed=self.run.seed)
        if not isinstance(data, Sequences):
            raise ConfigError(f"{self.run.dataset} holds no sequences")
        return data

    @property
    def labels(self) -> int:
        """The label set: every label of every part, so that no method lacks one."""
        return self.data.labels

    def tokens(self, part: Part) -> list[npt.NDArray[np.int64]]:
        """The token sequences of a part, cut to the size of the run.

        ``train_steps`` and ``valid_steps`` cut long streams where only their number of steps, not
        what is in them, makes training and search too long; test streams are always whole.
        """
        arrays = self.data.arrays(part)[: self.config.get("streams")]
        steps = self.config.get(f"{part}_steps", self.config.get("steps"))
        return [array[:steps] for array in arrays]

    @cached_property
    def train(self) -> list[Stream]:
        """Training streams: the previous token is the input, the next one the label."""
        return self._streams("train")

    @cached_property
    def valid(self) -> list[Stream]:
        """Validation streams: all that tuning and early stopping may see."""
        return self._streams("valid")

    @cached_property
    def test(self) -> list[Stream]:
        """Test streams: scored once."""
        return self._streams("test")

    def _streams(self, part: Part) -> list[Stream]:
        streams = []
        for array in self.tokens(part):
            y = torch.from_numpy(array)
            start = torch.tensor([self.labels])  # the models' token for "nothing seen yet"
            streams.append((torch.cat([start, y[:-1]]), y))
        return streams

    def fold(self, fold: Fold) -> list[Stream]:
        """One part of the training streams."""
        part, parts = fold
        return self.train[part::parts]

    def model(
        self, settings: Mapping[str, Any] | None = None, without: Fold | None = None
    ) -> SequenceModel:
        """A sequence model, trained once and kept.

        Parameters
        ----------
        settings
            Its kind, its options and those of its training; None takes those of the run.
        without
            A fold of the training streams that it must not see.
        """
        settings = dict(self.config["model"] if settings is None else settings)
        training = {name: settings.pop(name) for name in TRAINING if name in settings}
        kind = settings.pop("kind")
        if kind not in MODELS:
            raise ConfigError(f"the model's kind is {kind!r}; known are {sorted(MODELS)}")
        fold = [] if without is None else [without]
        return self.kept(
            "model",
            [self.extent(), kind, settings, training, *fold],
            lambda: MODELS[kind](self.labels, **settings),
            lambda model, checkpoint: self._train(model, training, checkpoint, without),
            {"model": settings, "training": training},
        )

    def extent(self) -> list[Any]:
        """What decides the training data beside the name of the data set and the seed."""
        names = ("streams", "steps", "recipe", "train_steps", "valid_steps")
        return [self.config.get(name) for name in names]

    def _train(
        self,
        model: SequenceModel,
        training: Mapping[str, Any],
        checkpoint: Path,
        without: Fold | None,
    ) -> None:
        options = FitOptions(seed=self.run.seed, **training)
        part, parts = without or (-1, 1)
        train = [y for i, (_, y) in enumerate(self.train) if i % parts != part]
        valid = [y for _, y in self.valid]
        with progress_bar("model", options.epochs, self.show) as report:
            fit_sequences(
                model,
                train,
                options,
                validation=valid,
                progress=lambda epoch, most, losses: report(
                    note=f"validation {losses['validation']:.3f} nats"
                ),
                checkpoint=checkpoint,
            )

    def validation_loss(self, method: OnlineMethod[Any]) -> float:
        """Nats per token on the validation streams."""
        done = evaluate(method, self.valid, self.config["batch_size"], show=False)
        return done.metrics.running

    def tested(self, ready: OnlineMethod[Any]) -> Record:
        """What a record keeps of the test."""
        traces = ThetaTraces()
        done = evaluate(ready, self.test, self.config["batch_size"], watch=traces, show=self.show)
        return figures(done.result()) | {
            "us_per_token": round(done.us_per_token, 2),
            "blocks": blocks(done.metrics),
            "curve": curve(done.metrics),
            "traces": traces.record(),
            "parameters": parameters(ready),
        }


TASK = SequenceTask
