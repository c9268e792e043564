"""LMN with what goes beyond the paper: trained scores of the cells, a theta for every step."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from labelmem.search import Point
from labelmem_paper.experiments.keeping import keep
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.fit_recall import RecallOptions, fit_recall, recall_loss
from labelmem_paper.experiments.language.lessons import Reading
from labelmem_paper.experiments.language.memory_of_text import TextMemory, TextMemoryOptions
from labelmem_paper.experiments.language.method import Beside
from labelmem_paper.experiments.language.recall import Recall


class LMN(LanguageContender):
    """The margin is searched by short trainings, then the reader is trained.

    The model has learned the training text by heart more than any other, so the reader is trained
    on the validation text: on its first ``share``, the rest deciding between margins and how many
    epochs are enough; at the end on all of it for so many epochs.

    A table may say: ``memory``, all but the margin; ``recall``, options of :class:`Recall`;
    ``training``, options of :class:`RecallOptions`, with ``share`` and ``search_epochs``.
    """

    grid = {"margin": [-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0]}
    start = {"margin": 8.0}

    @cached_property
    def training(self) -> dict[str, Any]:
        """What the size says of the training, and what the row changes."""
        return {**self.task.config["recall"], **self.options.get("training", {})}

    def build(self, point: Point) -> Beside:
        """With a reader that was trained for a short time."""
        options = self._options(epochs=self.training["search_epochs"])
        return self._beside(point, self._chosen(point, options)[0])

    def loss(self, point: Point) -> float:
        """Nats per word on the part of the validation text that was not trained on."""
        options = self._options(epochs=self.training["search_epochs"])
        return min(self._chosen(point, options)[1])

    def finish(self, point: Point, work: Path) -> Beside:
        """Trained to the end, on all of the validation text."""
        recall = self._new()

        def train(checkpoint: Path) -> None:
            first = checkpoint.with_suffix(".first")
            _, losses = self._chosen(point, self._options(), first)
            epochs = 1 + losses.index(min(losses))
            reading = self._reading(point, "all")
            fit_recall(recall, reading, self._options(epochs=epochs), None, checkpoint)
            first.unlink(missing_ok=True)

        keep(work / "recall.safetensors", "recall", recall, train, {"point": point})
        return self._beside(point, recall)

    def _beside(self, point: Point, recall: Recall) -> Beside:
        memory = self._memory(point)
        recall.requires_grad_(False)
        return Beside(
            self.model,
            self.task.opening,
            lambda streams: TextMemory(recall, memory, streams),
            [recall],
        )

    def _new(self) -> Recall:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.task.run.seed)
            recall = Recall(
                self.task.frequency.cpu(), self.model.dim, **self.options.get("recall", {})
            )
        return recall.to(self.task.device)

    def _memory(self, point: Point) -> TextMemoryOptions:
        return TextMemoryOptions(**{**self.options["memory"], **point})

    def _options(self, **changes: Any) -> RecallOptions:
        known = RecallOptions.__dataclass_fields__
        said = {name: value for name, value in self.training.items() if name in known}
        return RecallOptions(**(said | changes))

    def _reading(self, point: Point, part: str) -> Reading:
        text = self.task.valid
        cut = int(self.training["share"] * len(text))
        opening = self.task.opening if part != "rest" else int(text[cut - 1])
        words = {"all": text, "first": text[:cut], "rest": text[cut:]}[part]
        return Reading(self.model, words, opening, self._memory(point))

    def _chosen(
        self, point: Point, options: RecallOptions, checkpoint: Path | None = None
    ) -> tuple[Recall, list[float]]:
        """A reader of the first part at its best on the rest, and its loss there by epoch."""
        recall, rest = self._new(), self._reading(point, "rest")
        # Tracks are cut from the text: a short one has room for fewer.
        reading = self._reading(point, "first")
        options = replace(options, tracks=min(options.tracks, len(reading.text)))
        losses = fit_recall(recall, reading, options, lambda: recall_loss(recall, rest), checkpoint)
        return recall, losses


CONTENDER = LMN
