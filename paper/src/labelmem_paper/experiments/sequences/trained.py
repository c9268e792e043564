"""Methods with a network of their own as contenders: trained once for each setting, and kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from labelmem.baselines import method
from labelmem.errors import ConfigError, InputError, ModelError
from labelmem.progress import progress_bar
from labelmem.search import Point
from labelmem_paper.experiments.keeping import keep
from labelmem_paper.experiments.records import digest
from labelmem_paper.experiments.sequences.contender import Contender
from labelmem_paper.experiments.sequences.task import SequenceTask
from labelmem_paper.methods.sequence_method import SequenceMethod

__all__ = ["TrainedContender", "trained"]

SHARED = ("epochs", "patience", "lr", "batch", "weight_decay")
"""How the model of the run is trained, and these networks unless they are told otherwise."""
WORST = -math.log(1e-10)
"""The loss of a setting with which a network cannot be trained or used: the metrics' floor."""


def trained(
    task: SequenceTask, name: str, options: Mapping[str, Any], training: Mapping[str, Any]
) -> SequenceMethod[Any]:
    """The method of these options, its network trained on the training streams and kept.

    The best epoch is chosen on the validation streams. A training that was killed goes on from its
    last whole epoch; one that was finished is found in ``work``.

    Parameters
    ----------
    options
        Of the method; the seed is the run's.
    training
        Of its ``fit``.
    """
    cls = method(name)
    if not issubclass(cls, SequenceMethod):
        raise ConfigError(f"{name} has no network of its own to train")
    seed = task.run.seed
    made = cls(task.labels, cls.chosen_options(**options, seed=seed), task.device)
    setting = {"options": dict(options), "training": dict(training)}
    key = digest([task.run.dataset, seed, task.extent(), name, setting])
    keep(
        task.work / f"{name}-{key}.safetensors",
        "network",
        made.network,
        lambda checkpoint: _train(task, made, {**training, "seed": seed}, checkpoint),
        setting,
    )
    made.network.requires_grad_(False)
    return made


def _train(
    task: SequenceTask, made: SequenceMethod[Any], training: Mapping[str, Any], checkpoint: Any
) -> None:
    epochs = training.get("epochs", made.training["epochs"])
    with progress_bar(f"{made.name}: train", epochs, task.show) as report:
        made.fit(
            task.train,
            validation=task.valid,
            checkpoint=checkpoint,
            progress=lambda epoch, most, losses: report(
                note=f"validation {losses['validation']:.3f} nats"
            ),
            **training,
        )


class TrainedContender(Contender):
    """A method that is a network; a trial trains it only where its setting is new.

    A table may say more under the method's name, at a size or for all sizes: options of the method,
    and ``training``, options of its ``fit``.
    """

    name: ClassVar[str]
    make_with: ClassVar[Mapping[str, str]] = {}
    """Coordinates of the grid that are options to make and train the network with."""
    fit_with: ClassVar[Mapping[str, str]] = {}
    """Coordinates that are options of its training. All others are options when it is used."""

    def __init__(self, task: SequenceTask) -> None:
        super().__init__(task)
        self._trained: dict[str, SequenceMethod[Any]] = {}

    @cached_property
    def settings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Options of the method and of its training, before any trial changes them."""
        shared = self.task.config["model"]
        options: dict[str, Any] = self.shared_options()
        training = {key: shared[key] for key in SHARED if key in shared}
        for said in (dict(self.task.config.get(self.name, {})), dict(self.options)):
            training |= said.pop("training", {})
            options |= said
        return options, training

    def shared_options(self) -> dict[str, Any]:
        """Options that it takes over from the model of the run."""
        model = self.task.config["model"]
        return {"dropout": model.get("dropout", 0.0), "tied": model.get("tied", False)}

    def build(self, point: Point) -> SequenceMethod[Any]:
        """The trained network with the options of ``point``."""
        options, training = (dict(part) for part in self.settings)
        use = {}
        for name, value in point.items():
            if name in self.make_with:
                options[self.make_with[name]] = value
            elif name in self.fit_with:
                training[self.fit_with[name]] = value
            else:
                use[name] = value
        key = digest([options, training])
        if key not in self._trained:
            self._trained[key] = trained(self.task, self.name, options, training)
        return self._trained[key].variant(**use)

    def loss(self, point: Point) -> float:
        """Nats per token on validation; steps so large that the numbers run away are the worst."""
        try:
            found = super().loss(point)
        except (ModelError, InputError):
            return WORST
        return found if math.isfinite(found) else WORST
