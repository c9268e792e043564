"""New labels beside known ones: a network of pictures that meets characters it was not taught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from labelmem import Adapter
from labelmem.errors import ConfigError
from labelmem.models import ConvNet
from labelmem.online import OnlineMethod
from labelmem_paper.datasets import Images
from labelmem_paper.experiments.figures import curve, figures, parameters
from labelmem_paper.experiments.images.drawings import load_images
from labelmem_paper.experiments.images.fit_pictures import PictureOptions, bent, fit_steps
from labelmem_paper.experiments.images.second_showing import Scored, score
from labelmem_paper.experiments.images.showings import draw_showings
from labelmem_paper.experiments.images.strips import strips_of
from labelmem_paper.experiments.images.within_metric import within_metric
from labelmem_paper.experiments.images.world import Sees, World, embedded
from labelmem_paper.experiments.records import Record
from labelmem_paper.experiments.run_task import RunTask

__all__ = ["TASK", "ImageTask", "Tested"]

TRAINING = tuple(option.name for option in fields(PictureOptions))


@dataclass(frozen=True)
class Tested:
    """A method ready for the test, once for each label space."""

    all: OnlineMethod[Any]
    """Every character of the task is a label from the start."""
    met: OnlineMethod[Any]
    """Labels are the characters that were taught, and those that the stream has met."""
    sees: Sees = "h"
    """What its streams are made of."""
    curve: list[Record] = field(default_factory=list)
    """Figures of the same method with other settings, for the trade-off."""


@dataclass(frozen=True)
class ImageTask(RunTask):
    """Some characters are taught to a network, then sequences show these and new ones.

    By the run's seed, characters are drawn and their drawings shuffled: ``seen`` characters of
    which the first ``taught`` drawings train the network, ``new`` ones that nobody has seen. Test
    sequences show the other drawings of all of them, and what counts is whether the second showing
    of each label is recognised.

    Validation happens inside of what is taught: in world ``fold`` another network is trained
    without a ``1 / folds`` part of the seen characters, which take the part of new ones, and
    without a ``1 / folds`` part of the drawings of the others; sequences show what was left out.
    So nothing of a test sequence, neither a drawing nor a new character, is seen before the test.
    """

    @cached_property
    def data(self) -> Images:
        """All characters."""
        return load_images(self.run)

    @property
    def seen(self) -> int:
        """Characters that are taught."""
        return int(self.config["seen"])

    @property
    def labels(self) -> int:
        """Seen and new characters."""
        return self.seen + int(self.config["new"])

    @cached_property
    def pictures(self) -> Tensor:
        """(labels, drawings, 1, size, size), seen characters first, all shuffled by the seed."""
        return torch.from_numpy(self.data.floats(self.rows))[:, :, None].to(self.device)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """(labels, drawings) the number of each of these pictures in the data set."""
        rng = np.random.default_rng(self.run.seed)
        drawings = np.bincount(self.data.character)
        if len(drawings) < self.labels or len(set(drawings.tolist())) > 1:
            raise ConfigError(
                f"{self.run.dataset} has {len(drawings)} characters with {min(drawings)} to "
                f"{max(drawings)} drawings; expected at least {self.labels}, drawn equally often"
            )
        rows = self.data.character.argsort(kind="stable").reshape(len(drawings), -1)
        return rng.permuted(rng.permutation(rows)[: self.labels], axis=1)

    @cached_property
    def test(self) -> World:
        """The network that was taught all it may know."""
        return self._world(None)

    @cached_property
    def valid(self) -> World:
        """What hyper-parameters are chosen in."""
        return self.world(0)

    def world(self, fold: int) -> World:
        """A world inside of what is taught."""
        if not 0 <= fold < self.config["folds"]:
            raise ConfigError(f"fold is {fold}; this run has {self.config['folds']} of them")
        return self._world(fold)

    def _world(self, fold: int | None) -> World:
        taught, shown = self.parts(fold)
        network = self.network(taught, fold)
        h, maps, us = embedded(network, self.pictures, taught | shown)
        lesson = taught.to(self.device)
        metric = within_metric(maps[lesson], lesson.nonzero()[:, 0], **self.config["metric"])
        count = self.config["sequences"]["test" if fold is None else "valid"]
        # Test and every fold draw from different numbers, none of them that of the characters.
        seed = 1000 * (self.run.seed + 1) + (0 if fold is None else 1 + fold)
        showings = draw_showings(shown, count, self.config["shown"], 2, seed)
        return World(
            network, network.head, self.pictures, taught, shown, showings, h, metric(maps), us
        )

    def parts(self, fold: int | None) -> tuple[Tensor, Tensor]:
        """Which pictures (labels, drawings) are taught, and which ones sequences may show."""
        character = torch.arange(self.labels)[:, None]
        drawing = torch.arange(self.pictures.shape[1])[None]
        lesson = (character < self.seen) & (drawing < self.config["taught"])
        if fold is None:
            return lesson, (drawing >= self.config["taught"]).expand_as(lesson)
        folds = self.config["folds"]
        stranger, held = character % folds == fold, drawing % folds == fold
        return lesson & ~stranger & ~held, lesson & (stranger | held)

    @property
    def network_settings(self) -> dict[str, Any]:
        """Options of the network and of its training; a row may name one of several ``networks``.

        What is said there is laid over what is said of the ``network`` of the size.
        """
        which = self.config.get("which")
        said = self.config["networks"][which] if which else {}
        return {**self.config["network"], **said}

    def network(self, taught: Tensor, fold: int | None) -> ConvNet:
        """A network trained on the ``taught`` pictures, once and kept.

        It has an output for every character of the task, also for those that it is not taught.
        """
        settings = self.network_settings
        training = {name: settings.pop(name) for name in TRAINING if name in settings}
        extent = [self.config.get(name) for name in ("seen", "new", "taught", "folds", "recipe")]
        return self.kept(
            "network",
            [extent, fold, settings, training],
            lambda: ConvNet(self.labels, size=self.data.size, **settings),
            lambda network, checkpoint: self._train(network, taught, training, checkpoint),
            {"network": settings, "training": training},
        )

    def _train(
        self, network: ConvNet, taught: Tensor, training: Mapping[str, Any], checkpoint: Path
    ) -> None:
        options = PictureOptions(**training)
        x, y = self.pictures[taught.to(self.device)], taught.nonzero()[:, 0].to(self.device)

        def loss(generator: torch.Generator) -> Tensor:
            rows = torch.randint(len(y), (options.batch,), generator=generator).to(self.device)
            logits = network(bent(x[rows], options.bend, generator))
            return nn.functional.cross_entropy(logits.float(), y[rows])

        fit_steps(network, loss, options, self.run.seed, checkpoint, "network", self.show)

    def validation_loss(self, method: OnlineMethod[Any], sees: Sees = "h") -> float:
        """The share of second showings in the validation world that are missed."""
        return 1 - self.scored(method, self.valid, sees).accuracy

    def scored(self, method: OnlineMethod[Any], world: World, sees: Sees = "h") -> Scored:
        """Figures of a method in a world."""
        size = self.config["batch_size"]
        return score(method, world.streams(sees), world.showings.second, world.known, size)

    def tested(self, ready: Tested) -> Record:
        """What a record keeps of the test, in both label spaces."""
        world, pictures = self.test, ready.sees == "pictures"
        every = self.scored(ready.all, world, ready.sees)
        met = self.scored(ready.met, world.among(self.seen), ready.sees)
        record, other = figures(every.metrics.result()), figures(met.metrics.result())
        for part in ("metrics", "interval"):
            record[part] |= {
                f"{name}_met": value
                for name, value in other[part].items()
                if name.startswith("accuracy")
            }
        # Who answers from memory alone recalls well, and never names what was not shown before.
        first = figures(every.first.result())
        for part in ("metrics", "interval"):
            record[part]["accuracy_first_seen"] = first[part]["accuracy_seen"]
        # What sees pictures holds the whole network, and has run it itself.
        us = every.us_per_token + (0.0 if pictures else world.us_per_picture)
        beside = [] if pictures else [world.network]
        return record | {
            "us_per_token": round(us, 2),
            "curve": curve(every.metrics),
            "traces": every.traces.record(),
            "tradeoff": ready.curve,
            "strips": self._strips(ready),
            "parameters": parameters(ready.all, *beside),
        }

    def _strips(self, ready: Tested) -> list[Record]:
        """Some sequences step by step, where the row asks for that."""
        count = self.config["options"].get("strips", 0)
        if not count or not isinstance(ready.all, Adapter):
            return []
        return strips_of(ready.all, self.test, ready.sees, self.rows, count)


TASK = ImageTask
