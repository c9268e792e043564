"""Plain few-shot with thousands of labels: the memory alone is the classifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.models import ConvNet
from labelmem_paper.datasets import Images
from labelmem_paper.experiments.few_shot.embeddings import Embedding, make_embedding
from labelmem_paper.experiments.few_shot.episode import Episode, draw_episode, shot_figures
from labelmem_paper.experiments.images.drawings import load_images
from labelmem_paper.experiments.images.fit_pictures import PictureOptions, bent, fit_steps
from labelmem_paper.experiments.records import Record
from labelmem_paper.experiments.run_task import RunTask

__all__ = ["TASK", "FewShotTask", "Learner", "Shown"]

READINGS = ("taught", "unseen")
TRAINING = tuple(option.name for option in fields(PictureOptions))


@dataclass(frozen=True)
class Shown:
    """An episode with the pictures of its labels."""

    episode: Episode
    pictures: Tensor
    """(labels, drawings, size, size), one byte for each pixel."""

    def at(self, rows: slice | Tensor) -> Tensor:
        """Pictures (n, 1, size, size) of some steps, ink being 1."""
        where = self.pictures.device
        label, drawing = self.episode.label[rows].to(where), self.episode.drawing[rows].to(where)
        return as_floats(self.pictures[label, drawing])


@dataclass(frozen=True)
class Learner:
    """A method ready for the test."""

    answer: Callable[[Shown], Tensor]
    """The answers (N,) to the steps of an episode, each given before its label is learned."""
    parameters: int
    """Trained numbers."""


@dataclass(frozen=True)
class FewShotTask(RunTask):
    """An embedding is trained on some characters; then an episode shows thousands of labels.

    Training labels are the background characters turned by quarters. Of their drawings, shuffled by
    the run's seed, the first ``taught`` train the embedding, the next ``shots + 1`` make the
    validation episode and as many after them the test. With ``reading = "unseen"`` the test shows
    the other characters, turned alike, which nobody has seen.
    """

    def __post_init__(self) -> None:
        if self.reading not in READINGS:
            raise ConfigError(f"reading is {self.reading!r}; it must be one of {READINGS}")

    @property
    def reading(self) -> str:
        """Which labels the test shows."""
        return str(self.config["options"].get("reading", READINGS[0]))

    @property
    def shots(self) -> int:
        """The most showings before a prediction."""
        return int(self.config["shots"])

    @cached_property
    def data(self) -> Images:
        """All characters, not turned."""
        return load_images(self.run)

    @cached_property
    def background(self) -> Tensor:
        """(labels, drawings, size, size) of the training labels."""
        return self._pictures(self.data.kaiser_split()[0], 0)

    def _pictures(self, images: Images, stream: int) -> Tensor:
        turned = images.with_rotations()
        rows = turned.character.argsort(kind="stable").reshape(turned.labels, -1)
        rng = np.random.default_rng((self.run.seed, stream))
        return torch.from_numpy(turned.pixels[rng.permuted(rows, axis=1)]).to(self.device)

    @cached_property
    def valid(self) -> Shown:
        """Training labels, drawings that nobody was taught."""
        return self._shown(self.background, self.config["taught"], 1)

    @cached_property
    def test(self) -> Shown:
        """Training labels by other drawings, or labels that nobody has seen."""
        if self.reading == "taught":
            return self._shown(self.background, self.config["taught"] + self.shots + 1, 2)
        return self._shown(self._pictures(self.data.kaiser_split()[1], 1), 0, 2)

    def _shown(self, pictures: Tensor, first: int, stream: int) -> Shown:
        pictures = pictures[:, first : first + self.shots + 1]
        if pictures.shape[1] <= self.shots:
            raise ConfigError(
                f"{pictures.shape[1]} drawings are left to show; {self.shots + 1} are needed"
            )
        seed = 10 * self.run.seed + stream
        return Shown(draw_episode(len(pictures), pictures.shape[1], self.shots, seed), pictures)

    def embedding(self, kind: str, **options: Any) -> Embedding:
        """An embedding trained on the training labels, once and kept.

        Parameters
        ----------
        kind
            What it is trained for: see :mod:`labelmem_paper.experiments.few_shot.embeddings`.
        options
            Of that kind.
        """
        settings = {**self.config["network"], **self.config.get(kind, {})}
        training = {name: settings.pop(name) for name in TRAINING if name in settings}
        labels = len(self.background)
        if kind == "kaiser":
            options = {"cells": options.pop("cells", 2) * labels, **options}
        extent = [self.config.get(name) for name in ("taught", "shots", "recipe")]

        def make() -> Embedding:
            network = ConvNet(labels, size=self.data.size, **settings)
            return make_embedding(kind, network, **options)

        return self.kept(
            "embedding",
            [extent, kind, options, settings, training],
            make,
            lambda made, checkpoint: self._train(made, training, checkpoint, kind),
            {"kind": kind, "network": settings, "training": training},
        )

    def _train(
        self, made: Embedding, training: Mapping[str, Any], checkpoint: Path, about: str
    ) -> None:
        options = PictureOptions(**training)
        pictures = self.background[:, : self.config["taught"]]
        labels, drawings = pictures.shape[:2]

        def loss(generator: torch.Generator) -> Tensor:
            y = torch.randperm(labels, generator=generator)[: options.batch].to(self.device)
            order = torch.rand(len(y), drawings, generator=generator).argsort(dim=1)
            drawn = order[:, : self.shots + 1].to(self.device)
            x = as_floats(pictures[y[:, None], drawn].flatten(0, 1))
            h = made(bent(x, options.bend, generator)).reshape(*drawn.shape, -1)
            # Only the network may compute in 16 bits: distances are small differences.
            with torch.autocast(self.device.type, enabled=False):
                return made.loss(h.float(), y, generator)

        fit_steps(made, loss, options, self.run.seed, checkpoint, about, self.show)

    def missed(self, learner: Learner) -> float:
        """The share of misses in the validation episode, first showings apart."""
        metrics = shot_figures(self.valid.episode, learner.answer(self.valid), 1)["metrics"]
        return 1 - float(np.mean(list(metrics.values())))

    def tested(self, ready: Learner) -> Record:
        """What a record keeps of the test."""
        clock = time.perf_counter()
        answers = ready.answer(self.test)
        seconds = time.perf_counter() - clock
        return shot_figures(self.test.episode, answers) | {
            "us_per_token": round(1e6 * seconds / len(answers), 2),
            "curve": [],
            "traces": [],
            "parameters": ready.parameters,
        }


TASK = FewShotTask


def as_floats(pixels: Tensor) -> Tensor:
    """Bytes (…, s, s) as pictures (…, 1, s, s), ink being 1."""
    return pixels[..., None, :, :].float() / 255


def size_of(*modules: nn.Module) -> int:
    """Trained numbers of modules."""
    return sum(p.numel() for module in modules for p in module.parameters())


@torch.no_grad()
def vectors(embedding: nn.Module, shown: Shown, batch: int = 500) -> Tensor:
    """The h (N, dim) of all steps of an episode."""
    steps = len(shown.episode.label)
    parts = [embedding(shown.at(slice(i, i + batch))) for i in range(0, steps, batch)]
    return torch.cat(parts)
