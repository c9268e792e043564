"""MAML with thousands of labels: all weights step after every label, and are trained for it."""

from __future__ import annotations

import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.search import Point
from labelmem_paper.experiments.contender import TaskContender
from labelmem_paper.experiments.few_shot.all_weights import AllWeights
from labelmem_paper.experiments.few_shot.task import FewShotTask, Learner, Shown, as_floats, size_of
from labelmem_paper.experiments.images.fit_pictures import PictureOptions, fit_steps
from labelmem_paper.experiments.images.meta_learning import Lessons, adapted_losses
from labelmem_paper.experiments.images.showings import draw_showings, numbered
from labelmem_paper.experiments.keeping import keep
from labelmem_paper.experiments.records import digest


class MAML(TaskContender[FewShotTask, Learner]):
    """Body of the plain classifier, and an output layer of zeros with a row for every label.

    It is trained on short episodes of a few labels; the test has as many outputs as labels. So the
    steps in use are searched, that of the output layer apart from that of the body.
    """

    grid = {
        "head_lr": (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0),
        "lr": (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01),
    }
    start = {"head_lr": 0.03, "lr": 1e-4}

    @property
    def said(self) -> dict[str, Any]:
        """Options of its training: ``labels`` of an episode, ``inner`` step, those of pictures."""
        return dict(self.task.config["maml"])

    @cached_property
    def body(self) -> nn.Module:
        """What the rows of labels stand on, trained once and kept."""
        task = self.task
        body = task.embedding("classifier").body
        trained = [task.config["network"], task.config.get("classifier")]
        name = digest([task.run.dataset, task.run.seed, trained, self.said])
        keep(
            task.work / f"maml-{name}.safetensors",
            "maml",
            body.requires_grad_(True),
            lambda checkpoint: self._train(body, checkpoint),
            {"training": self.said},
        )
        return body.eval().requires_grad_(False)

    def _train(self, body: nn.Module, checkpoint: Path) -> None:
        task, said = self.task, self.said
        labels, lr = said.pop("labels"), said.pop("inner")
        first_order = said.pop("first_order", False)
        options = PictureOptions(**said)
        pictures = task.background[:, : task.config["taught"]]
        may = torch.ones(pictures.shape[:2], dtype=torch.bool)
        rows = self._rows(body, labels)

        def loss(generator: torch.Generator) -> Tensor:
            seed = int(torch.randint(2**31, (), generator=generator))
            drawn = draw_showings(may, options.batch, labels, task.shots + 1, seed)
            label, drawing = drawn.label.to(task.device), drawn.drawing.to(task.device)
            x = as_floats(pictures[label, drawing])
            lessons = Lessons(x, numbered(label), drawn.second.to(task.device))
            return adapted_losses(rows, lessons, lr, first_order)

        fit_steps(body, loss, options, task.run.seed, checkpoint, "maml", task.show)

    def _rows(self, body: nn.Module, labels: int) -> nn.Sequential:
        """The body with an output for every label; all start from nothing."""
        dim = int(self.task.config["network"].get("dim", 128))
        head = nn.Linear(dim, labels, device=self.task.device)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        return nn.Sequential(body, head)

    def loss(self, point: Point) -> float:
        """The share of misses in the validation episode."""
        return self.task.missed(self._learner(point))

    def finish(self, point: Point, work: Path) -> Learner:
        """Every step of the episode is a step of all weights."""
        return self._learner(point)

    def _learner(self, point: Point) -> Learner:
        def answer(shown: Shown) -> Tensor:
            rows = self._rows(self.body, len(shown.pictures))
            adapting = copy.deepcopy(rows).requires_grad_(True)
            return AllWeights(adapting, point["lr"], point["head_lr"], shown).answers()

        return Learner(answer, size_of(self.body))


CONTENDER = MAML
