"""MAML: all weights of the network step after every label, and are trained for it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import InputError, ModelError
from labelmem.online import OnlineMethod
from labelmem.search import Point
from labelmem_paper.experiments.images.chain_sgd import ChainSGD, ChainSGDOptions
from labelmem_paper.experiments.images.contender import ImageContender
from labelmem_paper.experiments.images.fit_pictures import PictureOptions, fit_steps
from labelmem_paper.experiments.images.meta_learning import Lessons, adapted_losses
from labelmem_paper.experiments.images.showings import draw_showings, numbered
from labelmem_paper.experiments.images.task import ImageTask, Tested
from labelmem_paper.experiments.images.world import World
from labelmem_paper.experiments.keeping import keep
from labelmem_paper.experiments.records import digest

WORST = 1.0
"""The loss of a step so large that the weights run away."""


class MAML(ImageContender):
    """The run's network, trained further for ``inner`` steps; the step in use is searched.

    It learns from sequences of what the network was taught. In each of them some labels change
    their names to labels that are never taught, so that their outputs learn to start from nothing.
    Then it adapts as ``sgd-all`` does. Where a label has no output yet, it gets the mean of those.
    """

    grid = {"lr": (0.0, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3)}
    start = {"lr": 0.03}

    def __init__(self, task: ImageTask) -> None:
        super().__init__(task)
        self._trained: dict[str, nn.Sequential] = {}

    def build(self, point: Point, world: World) -> OnlineMethod[Any]:
        """Around the trained weights, with as many outputs as the world's head."""
        body, head = self.trained(world)
        assert isinstance(head, nn.Linear)
        narrow = nn.Linear(head.in_features, world.head.out_features, device=head.weight.device)
        with torch.no_grad():
            narrow.weight.copy_(head.weight[: narrow.out_features])
            narrow.bias.copy_(head.bias[: narrow.out_features])
        options = ChainSGDOptions(lr=point["lr"], half=bool(self.said.get("half")))
        made = ChainSGD(nn.Sequential(body, narrow), options=options)
        strangers = (~world.known).nonzero()[:, 0]
        rows = {"weight": head.weight, "bias": head.bias}
        made.start_row = {name: of[strangers].mean(0) for name, of in rows.items()}
        return made

    def loss(self, point: Point) -> float:
        """The share of second showings that are missed; all, where the weights run away."""
        try:
            made = self.build(point, self.task.valid)
            return self.task.validation_loss(made, sees="pictures")
        except (ModelError, InputError):
            return WORST

    def finish(self, point: Point, work: Path) -> Tested:
        """It sees pictures, since the whole network moves."""
        ready = super().finish(point, work)
        return Tested(ready.all, ready.met, sees="pictures")

    @property
    def said(self) -> dict[str, Any]:
        """Options of its training: the ``inner`` step, and those of pictures."""
        return dict(self.task.config["maml"])

    def trained(self, world: World) -> nn.Sequential:
        """The network trained for its steps, once and kept."""
        task = self.task
        form = [task.run.dataset, task.run.seed, task.network_settings, self.said]
        name = digest([*form, world.taught.tolist()])
        if name not in self._trained:
            model = copy.deepcopy(nn.Sequential(world.network.body, world.network.head))
            keep(
                task.work / f"maml-{name}.safetensors",
                "maml",
                model.requires_grad_(True),
                lambda checkpoint: self._train(model, world, checkpoint),
                {"training": self.said},
            )
            self._trained[name] = model.eval().requires_grad_(False)
        return self._trained[name]

    def _train(self, model: nn.Sequential, world: World, checkpoint: Path) -> None:
        task, said = self.task, self.said
        lr, first_order = said.pop("inner"), said.pop("first_order", False)
        options = PictureOptions(**said)

        def loss(generator: torch.Generator) -> Tensor:
            lessons = self._lessons(world, options.batch, generator)
            return adapted_losses(model, lessons, lr, first_order)

        fit_steps(model, loss, options, task.run.seed, checkpoint, "maml", task.show)

    def _lessons(self, world: World, count: int, generator: torch.Generator) -> Lessons:
        task, device = self.task, self.task.device
        seed = int(torch.randint(2**31, (), generator=generator))
        drawn = draw_showings(world.taught, count, task.config["shown"], 2, seed)
        strangers = (~world.known).nonzero()[:, 0]
        # A stranger's name for every label, and whether it is used: as often as in the test.
        names = strangers[torch.rand(count, len(strangers), generator=generator).argsort(dim=1)]
        number = numbered(drawn.label)
        used = torch.rand(names.shape, generator=generator) < task.config["new"] / task.labels
        renamed = used.gather(1, number)
        y = torch.where(renamed, names.gather(1, number), drawn.label)
        counts = drawn.second | ~renamed
        x = world.pictures[drawn.label.to(device), drawn.drawing.to(device)]
        return Lessons(x, y.to(device), counts.to(device))


CONTENDER = MAML
