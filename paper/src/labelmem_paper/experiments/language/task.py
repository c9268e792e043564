"""Running text: a model that has read a training text meets another one, word by word."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import ConfigError
from labelmem.metrics import StreamMetrics
from labelmem.progress import progress_bar
from labelmem_paper.datasets import Text
from labelmem_paper.experiments.figures import blocks, figures
from labelmem_paper.experiments.language.laps import Laps
from labelmem_paper.experiments.language.method import TextMethod
from labelmem_paper.experiments.language.stories import END, load_text
from labelmem_paper.experiments.records import Record
from labelmem_paper.experiments.run_task import RunTask
from labelmem_paper.methods.fit_text import TextOptions, fit_text
from labelmem_paper.methods.pointer_lstm import PointerLSTM
from labelmem_paper.methods.text_lstm import TextLSTM

__all__ = ["TASK", "LanguageTask"]

MODELS: Mapping[str, type[TextLSTM]] = {"lstm": TextLSTM, "pointer": PointerLSTM}
TRAINING = tuple(option.name for option in fields(TextOptions))
PAUSE = 60.0
"""Seconds of training that a killed run may lose."""
TIMED = 50
"""Single words whose softmax is timed."""


@dataclass(frozen=True)
class LanguageTask(RunTask):
    """A language model is trained on the training text; methods adapt it to the test text.

    The test text is one stream from its first word to its last, unless the row's ``streams`` cuts
    it into parallel parts. Settings are chosen on the validation text, read in ``valid_streams``
    parts to be quick. Intervals come from drawing blocks of consecutive words anew.
    """

    @cached_property
    def data(self) -> Text:
        """The corpus."""
        return load_text(self.run)

    def text(self, part: str) -> Tensor:
        """(T,) words of a part, cut where the table says so."""
        words = getattr(self.data, part)
        most = self.config.get("words", {}).get(part, len(words))
        return torch.from_numpy(words[:most].copy()).to(self.device)

    @cached_property
    def train(self) -> Tensor:
        """What the model reads."""
        return self.text("train")

    @cached_property
    def valid(self) -> Tensor:
        """What settings are chosen on."""
        return self.text("valid")

    @cached_property
    def test(self) -> Tensor:
        """What figures are about."""
        return self.text("test")

    @cached_property
    def opening(self) -> int:
        """What is fed before the first word: the end of a line where the text has lines."""
        words = self.data.vocabulary
        return words.index(END) if END in words else len(words)

    @cached_property
    def frequency(self) -> Tensor:
        """(L,) log-probability of each word in the training text."""
        counts = torch.bincount(self.train, minlength=self.data.labels).float() + 1
        return (counts / counts.sum()).log()

    @property
    def model_settings(self) -> dict[str, Any]:
        """Options of the model and its training; a row may name one of several ``models``.

        What is said there is laid over what is said of the ``model`` of the size.
        """
        which = self.config.get("which")
        said = self.config["models"][which] if which else {}
        return {**self.config["model"], **said}

    def model(self, **changes: Any) -> TextLSTM:
        """A model trained on the training text, once and kept; ``changes`` to its settings."""
        settings = self.model_settings | changes
        training = {name: settings.pop(name) for name in TRAINING if name in settings}
        kind = settings.pop("kind", "lstm")
        if kind not in MODELS:
            raise ConfigError(f"the model's kind is {kind!r}; known are {sorted(MODELS)}")
        extent = [self.config.get(name) for name in ("recipe", "words")]
        options = TextOptions(seed=self.run.seed, **training)
        return self.kept(
            "model",
            [extent, kind, settings, training],
            lambda: MODELS[kind](self.data.labels, **settings),
            lambda model, checkpoint: self._train(model, options, checkpoint),
            {"model": settings, "training": training},
        )

    def _train(self, model: TextLSTM, options: TextOptions, checkpoint: Path) -> None:
        with progress_bar("model", options.epochs, self.show) as report:

            def watch(epoch: int, loss: float) -> None:
                report(note=f"validation perplexity {math.exp(loss):.1f}")

            fit_text(model, self.train, self.valid, options, self.opening, checkpoint, watch, PAUSE)

    def validation_loss(self, method: TextMethod, streams: int | None = None) -> float:
        """Nats per word of the validation text."""
        total, count = torch.zeros((), dtype=torch.float64, device=self.device), 0
        with torch.no_grad():
            for answer in method.read(self.valid, streams or int(self.config["valid_streams"])):
                total += answer.nats().double().sum()
                count += answer.y.numel()
        return float(total / count)

    def tested(self, ready: TextMethod) -> Record:
        """What a record keeps of the test."""
        laps, metrics, seen = Laps(self.device), StreamMetrics(), 0
        streams = int(self.config.get("streams", 1))
        length = len(self.test) // streams
        block = max(1, len(self.test) // int(self.config["blocks"]))
        with progress_bar("test", length, self.show) as report, torch.no_grad():
            for answer in ready.read(self.test, streams, laps):
                steps = answer.y.shape[1]
                place = seen + torch.arange(steps) + length * torch.arange(streams)[:, None]
                rows = (place.flatten() // block).tolist()
                probs = answer.probs().flatten(0, 1).clamp(max=1.0)
                metrics.update(probs, answer.y.flatten(), streams=rows)
                seen += steps
                report(steps, note=f"perplexity {math.exp(metrics.running):.1f}")
        us = {name: 1e6 * spent / (streams * length) for name, spent in laps.seconds.items()}
        modules = ready.modules
        return figures(metrics.result()) | {
            "streams": streams,  # of the text, not the blocks that the intervals come from
            "us_per_token": round(sum(us.values()), 2),
            **_split(us),
            "us_softmax": round(self._softmax_us(modules[0]), 2),
            "blocks": blocks(metrics),
            "parameters": sum(
                {id(p): p.numel() for module in modules for p in module.parameters()}.values()
            ),
        }

    @torch.no_grad()
    def _softmax_us(self, model: Any) -> float:
        """What the model's own softmax takes for one word alone, as a user meets it online."""
        h = torch.zeros(1, model.dim, device=self.device)
        torch.log_softmax(model.logits(h), dim=1)
        laps = Laps(self.device)
        with laps.part("softmax"):
            for _ in range(TIMED):
                torch.log_softmax(model.logits(h), dim=1)
        return 1e6 * laps.seconds["softmax"] / TIMED


def _split(us: Mapping[str, float]) -> Record:
    """Model and memory apart, where a method can tell them apart."""
    if "model" not in us:
        return {}
    model, memory = us["model"] + us.get("softmax", 0.0), us.get("memory", 0.0)
    return {"us_model": round(model, 2), "us_memory": round(memory, 2)}


TASK = LanguageTask
